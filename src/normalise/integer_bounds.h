// SPDX-License-Identifier: Apache-2.0
// How large the integers of a node can become: what the definitions of the TOSA operators that it lowers to say, so
// that no PyTorch operator needs a rule of its own.
#pragma once
#include <vector>

#include "ops/definitions/tosa_op.h"
#include "ops/trial.h"

namespace tosaic {

// Unbounded where it may be 2^53 or more. `assumed`: rests on what the program does not say, that an int64 input fits
// 32 bits.
struct IntegerBounds : tosa::Bounds {
  bool assumed = false;
  bool fits_i32() const { return lowest >= INT32_MIN && highest <= INT32_MAX; }
};
// Of an integer or boolean constant.
IntegerBounds integer_bounds(const Value& constant);

// For every value of the trial's graph, from what is known of its operands (in the order of trial.operands). Of values
// that are no integers nothing is known.
std::vector<IntegerBounds> integer_bounds(const Trial& trial, const std::vector<IntegerBounds>& operands);

}  // namespace tosaic
