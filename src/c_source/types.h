// SPDX-License-Identifier: Apache-2.0
// Element types and numbers, as C writes them. Private to src/c_source.
#pragma once
#include <string>
#include <string_view>

#include "ir/dtype.h"

namespace tosaic::c_source {

// "int8_t"; empty: C has no such type everywhere (narrow floats). int4 takes a byte here, i48 an int64_t.
constexpr std::string_view c_type(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::u8: return "uint8_t";
    case DType::i4:
    case DType::i8: return "int8_t";
    case DType::i16: return "int16_t";
    case DType::i32: return "int32_t";
    case DType::i48:
    case DType::i64:
    case DType::shape: return "int64_t";
    case DType::f32: return "float";
    case DType::f64: return "double";
    default: return {};
  }
}
// "s8": how functions of tosaic_lanes.h are called that load and store this type; empty: there are none.
constexpr std::string_view lanes_type(DType type) {
  switch (type) {
    case DType::i8: return "s8";
    case DType::i16: return "s16";
    case DType::i32: return "s32";
    default: return {};
  }
}
constexpr bool is_wide(DType type) { return type == DType::i48 || type == DType::i64; }

// The same number when C reads it.
std::string c_number(std::int64_t value);
std::string c_number(double value);  // as a float
// Element `i` of a constant.
std::string c_element(DType type, const void* data, std::size_t i);

}  // namespace tosaic::c_source
