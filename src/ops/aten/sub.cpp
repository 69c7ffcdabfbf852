// SPDX-License-Identifier: Apache-2.0
#include "ops/core_form.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  return p.finished(functions::weighted_sum(p.values[0], p.values[1], -call.number("alpha")));
}

std::optional<Node> core(const CoreCall& call) {
  return call.schema.name == "subtract" ? std::optional(call.renamed("sub")) : std::nullopt;
}
}  // namespace

AtenOp aten_sub() {
  return {.schemas = {"sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                      "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                      "sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
                      "sub_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)",
                      "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                      "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
                      "subtract_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
                      "subtract_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)"},
          .summary = "self - alpha * other, with broadcasting",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "x(4), x(2,3,4), alpha=2", "x(2,3,4), 2.5", "e(28), x()",
                     "i(-9,9,12), i(-9,9,12)", "i(-9,9,12), 2.5", "Scalar: x(2,3,4), 2.5", "Scalar: x(2,3,4), 2, 3",
                     "subtract.Tensor: x(2,3,4), x(2,3,4)", "subtract.Scalar: x(2,3,4), 2.5"},
          .core = core,
          .out_overloads = {{"sub.Tensor", "out"}}};
}
}  // namespace tosaic
