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
// The nearest float, all but for a few numbers in a million, whatever the device's division and its fused products
// make: of numbers between 1e-30 and 1e30.
Value rounded_reciprocal(Value x);
Value reciprocal_root(Value x);
// The larger (smaller) of two; of reals NaN as TOSA's nan_mode says.
Value larger(Value a, Value b, bool ignore_nan);
Value smaller(Value a, Value b, bool ignore_nan);

}  // namespace tosaic::shaders
