// SPDX-License-Identifier: Apache-2.0
// Functions of reals, of nothing but sums, products and bits: what drivers offer of their own differs in the last bits
// from device to device, and Vulkan asks little of some of them (sine, tangents).
#pragma once
#include "shaders/shader.h"

namespace tosaic::shaders {

Value exponential(Value x);
Value logarithm(Value x);
Value power(Value base, Value exponent);  // of bases that are not negative
Value sine(Value x);
Value cosine(Value x);
Value hyperbolic_tangent(Value x);
Value sigmoid(Value x);
Value error_function(Value x);
Value reciprocal(Value x);
Value reciprocal_root(Value x);
// The larger (smaller) of two; of reals NaN as TOSA's nan_mode says.
Value larger(Value a, Value b, bool ignore_nan);
Value smaller(Value a, Value b, bool ignore_nan);

}  // namespace tosaic::shaders
