// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/exact.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// |a|^y = exp(y log |a|); POW itself is unpredictable for zeros, infinities and NaN (spec POW, REQUIRE).
Val magnitude_power(Builder& b, Val a, Val y) {
  const DType dtype = a.dtype();
  y = functions::widened(y);
  Val log = b.unary(tosa::op::log, b.unary(tosa::op::abs, functions::widened(a))), zero = b.like(log, 0.0);
  Val one = functions::either(functions::equal(y, zero), functions::equal(log, zero));
  return functions::narrowed_to(b.unary(tosa::op::exp, b.select(one, zero, b.mul(y, log))), dtype);
}

// A negative base has a power where the exponent is whole, negative where it is odd.
Val general_power(Builder& b, Val a, Val y) {
  Val magnitude = magnitude_power(b, a, y), half = b.scaled(y, 0.5);
  Val whole = functions::equal(b.unary(tosa::op::floor, y), y);
  Val even = functions::equal(b.unary(tosa::op::floor, half), half);
  Val negative = b.select(even, magnitude, b.negate(magnitude));
  negative = b.select(whole, negative, b.like(a, std::numeric_limits<double>::quiet_NaN()));
  Val power = b.select(functions::less(a, 0.0), negative, magnitude);
  return b.exact() && !a.type().quantised() ? functions::nearest_power(a, y, power) : power;
}

Val constant_power(Builder& b, Val x, double exponent) {
  const bool whole = exponent == std::floor(exponent);
  if (whole && std::fabs(exponent) <= 16) return functions::whole_power(x, static_cast<std::int64_t>(exponent));
  if (exponent == 0.5) return functions::square_root(x);
  if (exponent == -0.5) return functions::inverse_square_root(x);
  if (!whole) {
    Val log = b.unary(tosa::op::log, functions::widened(x));
    return functions::narrowed_to(b.unary(tosa::op::exp, b.scaled(log, exponent)), x.dtype());
  }
  return general_power(b, x, b.like(x, exponent));
}

Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "exponent"});
  if (call.overload() == "Tensor_Scalar" || (call.schema().name == "pow_" && call.overload() == "Scalar")) {
    const double exponent = call.number("exponent");
    if (is_float(p.result) || p.values[0].type().quantised()) return constant_power(b, p.values[0], exponent);
    if (exponent < 0) b.refuse("aten.integer-power", "an integer tensor to a negative power");
    return p.finished(functions::whole_power(p.values[0], static_cast<std::int64_t>(exponent)));
  }
  if (!is_float(p.result)) b.refuse("aten.integer-power", "TOSA has no integer power with an exponent per element");
  return general_power(b, p.values[0], p.values[1]);
}
}  // namespace

AtenOp aten_pow() {
  return {.schemas = {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                      "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                      "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                      "pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
                      "pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)"},
          .summary = "self to the power exponent",
          .rule = Rule::pointwise,
          .overload_rules = {{"Tensor_Tensor", Rule::float_only}, {"Tensor", Rule::float_only}},
          .lower = {lower},
          .domain = {"x(2,3,4), 2", "x(2,3,4), 3", "u(0.1,4,24), 0.5", "u(0.1,4,24), -0.5",
                     "x(2,3,4), -2 # half=off: the reciprocal of values near 0 overflows f16", "u(0,4,24), 2.7",
                     "x(24), 17 # rtol=3e-5: errors of the logarithm times the exponent", "x(2,3,4), 0",
                     "i(-5,5,12), 3", "i(1,5,12), 0.5", "f(28), 5", "Tensor_Tensor: u(0.1,4,2,3,4), x(3,4)",
                     "Tensor_Tensor: x(3,4), i(-3,4,3,4)", "Tensor_Tensor: f(28), x()", "Scalar: 2, x(2,3,4)",
                     "Scalar: 0.5, s(-10,10,33)", "Scalar: -2.0, i(-3,4,12)"},
          .has_exact_form = true};
}
}  // namespace tosaic
