// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), y = call.tensor("other");
  auto normal = [&](std::vector<std::int64_t> dims, Val v) {
    std::vector<int> axes;
    for (auto d : dims) {
      if (d < -v.rank() || d >= v.rank())
        b.refuse("aten.tensordot.dims", "dim " + std::to_string(d) + " of shape " + to_string(v.shape()));
      axes.push_back(static_cast<int>(d < 0 ? d + v.rank() : d));
    }
    return axes;
  };
  const auto left = normal(call.ints("dims_self"), x), right = normal(call.ints("dims_other"), y);
  if (left.size() != right.size()) b.refuse("aten.tensordot.dims", "different numbers of dims");
  std::int64_t k = 1;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (x.dim(left[i]) != y.dim(right[i]))
      b.refuse("aten.tensordot.shape", "shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
    k *= x.dim(left[i]);
  }
  std::vector<std::int64_t> dims;
  auto free = [&](Val v, const std::vector<int>& axes) {
    std::vector<int> others;
    for (int i = 0; i < v.rank(); ++i)
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
        others.push_back(i);
        dims.push_back(v.dim(i));
      }
    return others;
  };
  std::vector<int> p = free(x, left), q = right;
  p.insert(p.end(), left.begin(), left.end());
  const auto others = free(y, right);
  q.insert(q.end(), others.begin(), others.end());
  Val rows = calls::view(calls::permute(x, p), {x.shape().elements() / k, k});
  Val columns = calls::view(calls::permute(y, q), {k, y.shape().elements() / k});
  return calls::view(b.aten(aten::op::mm, {rows, columns}), Shape(dims));
}
}  // namespace

AtenOp aten_tensordot() {
  return {.schemas = {"tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor"},
          .summary = "products summed over chosen dims of both",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(3,4,5), x(4,5,2), [1,2], [0,1]", "x(3,4), x(5,4), [-1], [1]"}};
}
}  // namespace tosaic
