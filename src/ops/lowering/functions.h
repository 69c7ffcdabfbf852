// SPDX-License-Identifier: Apache-2.0
// Float functions that TOSA does not have and several ATen operators need. Each is good to 4e-7 of its result in
// f32 over its whole domain, NaN and infinities included, and to 1e-7 when run in double (where int8 and int16
// tables come from; constants stay f32), so none of them may rely on the rounding of one particular format.
#pragma once
#include <initializer_list>

#include "ops/builder.h"
#include "ops/lowering/whole_numbers.h"

namespace tosaic::functions {

// c0 + c1 z + c2 z^2 + ..., by Horner's rule.
Val polynomial(Val z, std::initializer_list<double> coefficients);

// Where an intermediate rounding of f16 or bf16 would be magnified (exponents, quotients), PyTorch computes in f32
// too: x as f32, and y back in `to`. Other types stay.
Val widened(Val x);
Val narrowed_to(Val y, DType to);

Val square_root(Val x);  // negative: NaN
Val exp_minus_one(Val x);
Val log_one_plus(Val x);
Val inverse_tanh(Val x);
Val hyperbolic_sine(Val x);
Val hyperbolic_cosine(Val x);

Val arctangent_of_unit(Val t);  // t in [0, 1]
Val arcsine(Val x);
Val arccosine(Val x);
Val arctangent(Val x);

// x where `sign` is not negative, otherwise -x.
Val with_sign_of(Val sign, Val x);
// As integers: to the nearest, ties to even, and what lies beyond `to` to its nearest, as TOSA's CAST does. (PyTorch's
// casts truncate.)
Val rounded(Val x, DType to);
// base^exponent for a whole exponent, by repeated squaring; negative exponents take the reciprocal first.
Val whole_power(Val base, std::int64_t exponent);

// a where x <= bound, elsewhere (and where x is NaN) c. Quantised operands share a scale.
Val up_to(Val x, double bound, Val a, Val c);
// a + weight * b. Quantised operands share a scale; the weighted one is brought back to it.
Val weighted_sum(Val a, Val b, double weight);

// |x|, of quantised values as well.
Val magnitude(Val x);

// Predicates, bool tensors.
Val greater(Val a, Val b);
Val greater(Val a, double b);
Val less(Val a, double b);
Val at_least(Val a, Val b);
Val equal(Val a, Val b);
Val both(Val p, Val q);
Val either(Val p, Val q);
Val negation(Val p);

}  // namespace tosaic::functions
