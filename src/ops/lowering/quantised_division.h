// SPDX-License-Identifier: Apache-2.0
// Whole quotients of quantised tensors, and what they leave over: their integers are divided, so nothing is rounded
// before the quotient is. For operators of Rule::sum, which brings both operands to i32 of one scale.
#pragma once
#include <optional>

#include "ops/op.h"

namespace tosaic {

struct Division {
  Val quotient, remainder;
};
enum class Toward : std::uint8_t { below, zero };  // floor_divide and remainder; fmod
// self / other; nothing where neither is quantised.
std::optional<Division> divide_quantised(Builder& b, const Call& call, Toward toward);

}  // namespace tosaic
