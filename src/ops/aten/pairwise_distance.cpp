// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val apart = calls::add(calls::sub(call.tensor("x1"), call.tensor("x2")), call.number("eps"));
  return b.aten(aten::op::linalg_vector_norm, {apart},
                {{"ord", call.number("p")}, {"dim", std::vector<std::int64_t>{-1}}, {"keepdim", call.flag("keepdim")}});
}
}  // namespace

AtenOp aten_pairwise_distance() {
  return {.schemas = {"pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                      "keepdim=False) -> Tensor"},
          .summary = "the distance between rows of the same number",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,4), x(3,4)", "x(2,3,4), x(4), 1.0, 1e-6, True", "x(4), x(4), inf"}};
}
}  // namespace tosaic
