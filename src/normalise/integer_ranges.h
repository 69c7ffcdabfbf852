// SPDX-License-Identifier: Apache-2.0
// How large the integers of a node can become: intervals over the TOSA operators that it lowers to, which are few and
// closed, so that no PyTorch operator needs a rule of its own.
#pragma once
#include <vector>

#include "ops/trial.h"

namespace tosaic {

// Both ends are included. `assumed`: rests on what the program does not say, that an int64 input fits 32 bits.
struct IntegerInterval {
  std::int64_t lowest = INT64_MIN, highest = INT64_MAX;
  bool assumed = false;
  bool fits_i32() const { return lowest >= INT32_MIN && highest <= INT32_MAX; }
};

// For every value of the trial's graph, from what is known of its operands (in the order of trial.operands). Values
// that are no integers have the interval of everything.
std::vector<IntegerInterval> integer_ranges(const Trial& trial, const std::vector<IntegerInterval>& operands);

}  // namespace tosaic
