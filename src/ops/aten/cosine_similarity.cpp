// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val a = call.tensor("x1"), c = call.tensor("x2");
  const int axis = call.axis("dim", std::max(a.rank(), c.rank()));
  const double eps = call.number("eps");
  // x / max(|x|, eps), summed over products. An operand that broadcasts along the dim counts once per element.
  auto unit = [&](Val x) {
    Val length = calls::sqrt(calls::sum(calls::mul(x, x), {axis}, true));
    return calls::mul(x, calls::reciprocal(calls::at_least(length, eps)));
  };
  std::vector<std::int64_t> shape;
  for (int i = 0; i < std::max(a.rank(), c.rank()); ++i) {
    const int ai = i - (std::max(a.rank(), c.rank()) - a.rank()), ci = i - (std::max(a.rank(), c.rank()) - c.rank());
    shape.push_back(std::max<std::int64_t>(ai < 0 ? 1 : a.dim(ai), ci < 0 ? 1 : c.dim(ci)));
  }
  auto expanded = [&](Val x) {
    return x.shape() == Shape(shape) ? x : x.builder().aten(aten::op::expand, {x}, {{"size", shape}});
  };
  return calls::sum(calls::mul(unit(expanded(a)), unit(expanded(c))), {axis}, false);
}
}  // namespace

AtenOp aten_cosine_similarity() {
  return {.schemas = {"cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"},
          .summary = "the cosine of the angle between vectors along a dim",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,5), x(2,5)", "x(2,3,4), x(2,3,4), -1", "x(3,4), x(1,4)"},
          .bounds = {{-1, 1}}};
}
}  // namespace tosaic
