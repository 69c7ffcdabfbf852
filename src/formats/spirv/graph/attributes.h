// SPDX-License-Identifier: Apache-2.0
// Enumerations of the instruction set TOSA.001000.1 as the IR spells them. They are not those of the flatbuffer.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/dtype.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::spirv {

// Names of values 1, 2, ...; empty for attributes that are no named enumeration.
constexpr std::array<std::string_view, 3> names_of(tosa::AttrKind kind) {
  switch (kind) {
    case tosa::AttrKind::nan_mode: return {"propagate", "ignore"};
    case tosa::AttrKind::rounding_mode: return {"single_round", "inexact_round", "double_round"};
    case tosa::AttrKind::resize_mode: return {"nearest", "bilinear"};
    default: return {};
  }
}

inline constexpr std::array<DType, 4> accumulators{DType::i32, DType::f16, DType::f32, DType::i48};  // 1, 2, 3, 4

}  // namespace tosaic::spirv
