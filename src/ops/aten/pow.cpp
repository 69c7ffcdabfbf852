// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/calls.h"
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

// The elements of a constant of floats.
std::optional<std::vector<double>> elements_of(Builder& b, Val v) {
  if (!v.is_constant() || v.type().quantised()) return std::nullopt;
  std::vector<double> all;
  for (std::int64_t i = 0; i < v.shape().elements(); ++i)
    all.push_back(element_as_double(v.dtype(), b.graph()[v.id()].constant.data(), static_cast<std::size_t>(i)));
  return all;
}

// In other calls, for integers: by one exponent, or e^(exponent log |x|). A power that is not whole of a number below
// zero is none, and counts as that of its magnitude.
Vals composed(Builder& b, const Call& call) {
  constexpr double least = 1e-30;  // log 0 is no number
  if (!call.optional_tensor("self") || !call.optional_tensor("exponent") ||
      !is_float(
          promotion::result_type({promotion::Operand::of(call, "self"), promotion::Operand::of(call, "exponent")})))
    b.refuse("aten.integer-power", "TOSA has no integer power with an exponent per element");
  const Val x = promotion::as_real(call.tensor("self")), y = promotion::as_real(call.tensor("exponent"));
  const auto bases = elements_of(b, x), exponents = elements_of(b, y);
  const auto any = [](const std::vector<double>& all, auto holds) { return std::ranges::any_of(all, holds); };
  bool spans = y.rank() <= x.rank();  // the result has x's shape
  for (int d = 1; spans && d <= y.rank(); ++d) spans = y.dim(-d) == 1 || y.dim(-d) == x.dim(-d);
  if (spans && exponents && !any(*exponents, [&](double e) { return e != exponents->front(); }))
    return b.aten(aten::op::pow_Tensor_Scalar, {x}, {{"exponent", exponents->front()}});
  if (bases && !any(*bases, [](double base) { return !(base > 0); })) return calls::exp(calls::mul(y, calls::log(x)));
  if (!exponents)
    b.refuse("quantise.power", "of a base that may be below zero, to a power that only the running program knows");
  const auto odd = [](double e) { return std::fabs(std::fmod(e, 2)) == 1; };
  const Val log = calls::log(calls::at_least(calls::abs(x), least));
  const Val power = calls::exp(calls::mul(log, y));
  if (!any(*exponents, odd)) return power;
  std::vector<std::int64_t> shown;
  for (double e : *exponents) shown.push_back(odd(e));
  const Val mask = b.constant({DType::boolean, y.shape(), {}}, constant_bytes(DType::boolean, shown));
  return calls::where(mask, calls::mul(power, calls::unary(aten::op::sign, x)), power);
}
}  // namespace

AtenOp aten_pow() {
  return {
      .schemas = {"pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                  "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                  "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                  "pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
                  "pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)"},
      .summary = "self to the power exponent",
      .rule = Rule::pointwise,
      .overload_rules = {{"Tensor_Tensor", Rule::inside}, {"Tensor", Rule::inside}},
      .lower = {lower, composed},
      .domain = {"x(2,3,4), 2", "x(2,3,4), 3", "u(0.1,4,24), 0.5", "u(0.1,4,24), -0.5",
                 "x(2,3,4), -2 # half=off: the reciprocal of values near 0 overflows f16", "u(0,4,24), 2.7",
                 "x(24), 17 # rtol=3e-5: errors of the logarithm times the exponent", "x(2,3,4), 0", "i(-5,5,12), 3",
                 "i(1,5,12), 0.5", "f(28), 5",
                 "Tensor_Tensor: u(0.1,4,2,3,4), x(3,4) # integer=target.unsupported: the base may be below zero",
                 "Tensor_Tensor: x(3,4), i(-3,4,3,4) # integer=target.unsupported: the base may be below zero",
                 "Tensor_Tensor: f(28), x() # integer=target.unsupported: the base may be below zero",
                 "Tensor_Tensor: u(0.1,4,2,3,4), const(u(0.5,2,4))", "Tensor_Tensor: u(0.5,4,3,4), const(i(-2,3,4))",
                 "Scalar: 2, x(2,3,4)", "Scalar: 0.5, s(-10,10,33)", "Scalar: -2.0, i(-3,4,12)"},
      .has_exact_form = true};
}
}  // namespace tosaic
