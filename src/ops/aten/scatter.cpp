// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// One number may go to an index several times, so that is a choice by mask.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), index = call.tensor("index");
  const int axis = call.axis("dim", x.rank());
  if (call.overload() == "value") {
    Val value = b.like(x, call.number("value"));
    return x.rank() == 0 ? value : b.select(named_indices(b, x, axis, index), value, x);
  }
  Val source = call.tensor("src");
  return x.rank() == 0 ? b.reshape(source, {}) : scattered_lines(b, x, axis, index, source, replaced_by(call));
}
}  // namespace

AtenOp aten_scatter() {
  return {
      .schemas = {"scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                  "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                  "scatter_.src(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor(a!)",
                  "scatter_.value(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!)"},
      .summary = "a copy of x with elements put where indices along one dim name",
      .rule = Rule::joined,
      .lower = {lower},
      .domain = {"x(3,5), 1, l(2,3,3,1), x(3,1)", "x(3,5), 0, l(1,2,1,4), x(2,5)", "value: x(3,5), 1, l(4,5,3,1), 2.5",
                 "value: x(4,3), 0, l(0,4,3,3), 1", "x(3,5), 1, l(0,5,3,8), x(3,9)", "x(4,3), 0, l(0,3,6,2), x(6,3)"}};
}
}  // namespace tosaic
