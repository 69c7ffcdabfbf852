// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool largest = call.schema().name == "argmax", keep = call.flag("keepdim");
  if (call.has("dim") && x.rank() > 0) return index_of_extreme(x, call.axis("dim", x.rank()), keep, largest);
  Val index = index_of_extreme(b.reshape(x, {x.shape().elements()}), 0, false, largest);
  return keep ? b.reshape(index, Shape(std::vector<std::int64_t>(static_cast<std::size_t>(x.rank()), 1))) : index;
}
}  // namespace

AtenOp aten_argmax() {
  return {.schemas = {"argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
                      "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor"},
          .summary = "the index of the largest (smallest) element, along one dim or in row-major order",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(3,7), 1", "x(3,7), 0, True", "x(2,3,4)", "i(-20,20,4,5), -1", "argmin.default: x(3,7), 1",
                     "argmin.default: i(-20,20,4,5), -1"}};
}
}  // namespace tosaic
