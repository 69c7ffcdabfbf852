// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  const std::int64_t size = x.dim(axis), index = python_index(b, call, "index", size);
  Val source = call.tensor("src");
  if (source.rank() + 1 != x.rank())
    b.refuse("aten.select_scatter.rank",
             "a slice of shape " + to_string(source.shape()) + " for shape " + to_string(x.shape()));
  std::vector<Val> parts;
  if (index > 0) parts.push_back(b.slice_axis(x, axis, 0, index));
  parts.push_back(b.unsqueeze(source, axis));
  if (index + 1 < size) parts.push_back(b.slice_axis(x, axis, index + 1, size - index - 1));
  return b.concat(parts, axis);
}
}  // namespace

AtenOp aten_select_scatter() {
  return {.schemas = {"select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor"},
          .summary = "a copy of the first tensor in which one slice of a dim is replaced by the second",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(3,4), x(4), 0, 1", "x(3,4), x(3), -1, -1", "x(3,4), x(4), 0, 0"}};
}
}  // namespace tosaic
