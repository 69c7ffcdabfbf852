// SPDX-License-Identifier: Apache-2.0
// Whole quotients of floats or integers, and what they leave.
#pragma once
#include "ops/builder.h"

namespace tosaic::functions {

// a / d, rounded down. Right wherever a float holds the quotient, else the nearest one.
Val floor_quotient(Val a, Val d);
// a - d * floor(a / d), with the divisor's sign, and a - d * trunc(a / d), with the dividend's: without any rounding
// for quotients up to 2^126, NaN beyond. (The former rounds where it takes what the latter left from the divisor, as
// PyTorch does.)
Val floor_remainder(Val a, Val d);
Val truncated_remainder(Val a, Val d);

}  // namespace tosaic::functions
