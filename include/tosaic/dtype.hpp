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
};

// Bytes of one element in tosaic's own memory: bool and i4 take one byte, i48 and shape eight.
constexpr std::size_t storage_size(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::i4:
    case DType::i8:
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2: return 1;
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
