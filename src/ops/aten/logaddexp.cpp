// SPDX-License-Identifier: Apache-2.0
#include <numbers>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The larger one plus log(1 + e^-|a - b|). Of two equal infinities the difference counts as 0.
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_real(call.tensor("self")), y = promotion::as_real(call.tensor("other"));
  const double base = call.schema().name == "logaddexp2" ? std::numbers::ln2 : 1.0;
  Val apart = b.aten(aten::op::nan_to_num, {calls::abs(calls::sub(x, y))}, {{"nan", 0.0}});
  Val tail = b.aten(aten::op::softplus, {calls::mul(calls::unary(aten::op::neg, apart), base)});
  return calls::add(b.aten(aten::op::maximum, {x, y}), calls::mul(tail, 1 / base));
}
}  // namespace

AtenOp aten_logaddexp() {
  return {
      .schemas = {"logaddexp(Tensor self, Tensor other) -> Tensor", "logaddexp2(Tensor self, Tensor other) -> Tensor"},
      .summary = "log(e^self + e^other) without overflow; logaddexp2 with base 2",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(2,3,4), x(2,3,4)", "u(-90,90,2,3,4), u(-90,90,3,1)", "n(8), n(8)", "n(8), x()",
                 "s(-30,30,61), x(1)", "logaddexp2.default: x(2,3,4), x(4)", "logaddexp2.default: n(8), n(8)"}};
}
}  // namespace tosaic
