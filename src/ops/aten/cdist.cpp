// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The norm of the differences of all pairs of rows.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("x1"), y = call.tensor("x2");
  if (x.rank() < 2 || y.rank() < 2 || x.dim(-1) != y.dim(-1))
    b.refuse("aten.cdist.shape", "rows of shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
  const double p = call.schema().argument("p") ? call.number("p") : 2.0;
  auto left = x.shape().sizes(), right = y.shape().sizes();
  left.insert(left.end() - 1, 1);
  right.insert(right.end() - 2, 1);
  Val apart = calls::sub(calls::view(x, Shape(left)), calls::view(y, Shape(right)));
  return b.aten(aten::op::linalg_vector_norm, {apart}, {{"ord", p}, {"dim", std::vector<std::int64_t>{-1}}});
}
}  // namespace

AtenOp aten_cdist() {
  return {.schemas = {"cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
                      "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
                      "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor"},
          .summary = "the distances between all pairs of rows of two tensors",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,4), x(5,4)", "x(2,3,4), x(2,5,4), 1.0", "x(2,1,3,4), x(5,5,4), inf", "x(3,4), x(2,4), 3.0",
                     "x(3,4), x(2,4), 0.0", "_cdist_forward.default: x(3,4), x(5,4), 2.0, None",
                     "_euclidean_dist.default: x(3,4), x(5,4)"},
          .has_exact_form = true};
}
}  // namespace tosaic
