// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/slicing.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const int axis = sliced_axis(b, call, x);
  return b.squeeze(b.slice_axis(x, axis, python_index(b, call, "index", x.dim(axis)), 1), {axis});
}
}  // namespace

AtenOp aten_select() {
  return {.schemas = {"select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
                      "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor"},
          .summary = "one slice of a dim, without that dim",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,4), 0, 1", "x(2,3,4), -1, -1", "x(5), 0, 2", "select_copy.int: x(3,4), 1, -2"}};
}
}  // namespace tosaic
