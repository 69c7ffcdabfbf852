// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// A quantised tensor times a scalar keeps its quantised values and changes its scale; only the sign needs arithmetic.
Val times(Builder& b, Val x, double factor) {
  if (factor > 0) return b.scaled(x, factor);
  if (factor < 0) return b.scaled(b.negate(x), -factor);
  return b.broadcast_to(b.like(x, 0.0), x.shape());
}

Vals lower(Builder& b, const Call& call) {
  auto x = promotion::Operand::of(call, "self"), y = promotion::Operand::of(call, "other");
  if (x.tensor && x.tensor->type().quantised() && !y.tensor) return times(b, *x.tensor, y.number);
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(b.mul(p.values[0], p.values[1]));
}

std::optional<Node> core(const CoreCall& call) {
  return call.schema.name == "multiply" ? std::optional(call.renamed("mul")) : std::nullopt;
}
}  // namespace

AtenOp aten_mul() {
  return {
      .schemas = {"mul.Tensor(Tensor self, Tensor other) -> Tensor", "mul.Scalar(Tensor self, Scalar other) -> Tensor",
                  "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "mul_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                  "multiply.Tensor(Tensor self, Tensor other) -> Tensor",
                  "multiply.Scalar(Tensor self, Scalar other) -> Tensor",
                  "multiply_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                  "multiply_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"},
      .summary = "self * other, with broadcasting",
      .rule = Rule::product,
      .lower = {lower},
      .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "x(4), x(2,3,4)", "x(2,3,4), 2.5", "e(28), x()",
                 "i(-9,9,12), i(-9,9,12)", "i(-9,9,12), 2.5", "b(6), b(6)", "x(2,3), b(3)", "b(2,1), x(2,3)",
                 "Scalar: x(2,3,4), -2.5", "Scalar: i(-9,9,12), 3", "multiply.Tensor: x(2,3,4), x(2,3,4)",
                 "multiply.Scalar: x(2,3,4), -2.5"},
      .core = core,
      .out_overloads = {{"mul.Tensor", "out"}}};
}
}  // namespace tosaic
