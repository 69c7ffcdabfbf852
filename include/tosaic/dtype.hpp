// SPDX-License-Identifier: Apache-2.0
// Element types: TOSA's, and the few that only PyTorch programs hold (u8, i64, f64).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tosaic/export.hpp"

namespace tosaic {

enum class DType : std::uint8_t {
  boolean,
  i4,
  i8,
  u8,
  i16,
  i32,
  i48,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  shape,  // TOSA's !shape: a list of i64 known at compile time
  // Of block-scaled tensors (OCP Microscaling 1.0, TOSA 1.1): elements, and the power of two that a block of them
  // shares.
  f4e2m1,
  f6e2m3,
  f6e3m2,
  mxint8,   // whole multiples of 1/64
  f8ue8m0,  // 2^-127 to 2^127, or NaN
};

// Bytes of one element in tosaic's own memory: what is narrower than a byte takes one, i48 and shape eight.
constexpr std::size_t storage_size(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i4:
    case DType::i8:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f4e2m1:
    case DType::f6e2m3:
    case DType::f6e3m2:
    case DType::mxint8:
    case DType::f8ue8m0: return 1;
    case DType::i16:
    case DType::f16:
    case DType::bf16: return 2;
    case DType::i32:
    case DType::f32: return 4;
    case DType::i48:
    case DType::i64:
    case DType::f64:
    case DType::shape: return 8;
  }
  return 0;
}

TOSAIC_API std::string_view name_of(DType type);  // "f32", "i8", "bool"
// The type of which name_of gives this name; nullopt: there is none.
TOSAIC_API std::optional<DType> dtype_named(std::string_view name);

}  // namespace tosaic
