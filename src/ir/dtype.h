// SPDX-License-Identifier: Apache-2.0
// What kind of number an element type is, and its range. The type itself is public: tosaic/dtype.hpp.
#pragma once
#include <cstdint>

#include "tosaic/dtype.hpp"

namespace tosaic {

// Of TOSA 1.1's block-scaled tensors alone; real numbers, though mxint8 has a fixed point.
constexpr bool is_of_blocks(DType type) {
  return type == DType::f4e2m1 || type == DType::f6e2m3 || type == DType::f6e3m2 || type == DType::mxint8 ||
         type == DType::f8ue8m0;
}
constexpr bool is_float(DType type) {
  return type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64 ||
         type == DType::f8e4m3 || type == DType::f8e5m2 || is_of_blocks(type);
}
constexpr bool is_integer(DType type) {
  return type == DType::i4 || type == DType::i8 || type == DType::u8 || type == DType::i16 || type == DType::i32 ||
         type == DType::i48 || type == DType::i64;
}
struct IntegerRange {
  std::int64_t lowest, highest;
};
constexpr IntegerRange range_of(DType type) {
  switch (type) {
    case DType::boolean: return {0, 1};
    case DType::i4: return {-7, 7};  // TOSA int4_t leaves -8 out
    case DType::i8: return {-128, 127};
    case DType::u8: return {0, 255};
    case DType::i16: return {-32768, 32767};
    case DType::i32: return {INT32_MIN, INT32_MAX};
    case DType::i48: return {-(std::int64_t{1} << 47), (std::int64_t{1} << 47) - 1};
    default: return {INT64_MIN, INT64_MAX};
  }
}

}  // namespace tosaic
