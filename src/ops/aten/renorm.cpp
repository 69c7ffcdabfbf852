// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Slices along `dim` longer than maxnorm are scaled to it: braindecode's EEGNet keeps its weights small by this.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int kept = call.axis("dim", x.rank());
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (axis != kept) axes.push_back(axis);
  if (axes.empty()) b.refuse("aten.renorm.rank", "renorm takes two dims or more");
  const double most = call.number("maxnorm");
  Val length = b.aten(aten::op::linalg_vector_norm, {x}, {{"ord", call.number("p")}, {"dim", axes}, {"keepdim", true}});
  Val scale = calls::mul(calls::reciprocal(calls::add(length, 1e-7)), most);
  Val longer = b.aten(aten::op::gt_Scalar, {length}, {{"other", most}});
  return calls::mul(x, calls::where(longer, scale, b.scalar(1.0, x.dtype())));
}
}  // namespace

AtenOp aten_renorm() {
  return {.schemas = {"renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
                      "renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)"},
          .summary = "slices along a dim, none longer than a p-norm",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(4,3,2), 2, 0, 1.5", "x(3,4), 1, -1, 2.0", "x(3,4), 2, 0, 100"}};
}
}  // namespace tosaic
