// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool along = call.schema().name == "take_along_dim";
  Val x = call.tensor("self"), index = call.tensor(along ? "indices" : "index");
  if (along && !call.has("dim")) {
    x = b.reshape(x, {x.shape().elements()});
    index = b.reshape(index, {index.shape().elements()});
  }
  if (x.rank() == 0) return x;
  const int axis = call.has("dim") ? call.axis("dim", x.rank()) : 0;
  if (along && index.rank() == x.rank()) {  // the other dims broadcast
    auto values = x.shape().sizes(), wanted = index.shape().sizes();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (static_cast<int>(i) != axis) values[i] = wanted[i] = std::max(values[i], wanted[i]);
    x = b.broadcast_to(x, Shape(values));
    index = b.broadcast_to(index, Shape(wanted));
  }
  return gathered_lines(b, x, axis, index);
}
}  // namespace

AtenOp aten_gather() {
  return {.schemas = {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
                      "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor"},
          .summary = "along one dim, the element that each index names",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(3,5), 1, l(0,5,3,2)", "x(3,5), 0, l(0,3,2,4)", "x(2,3,4), -2, l(0,3,2,6,4)",
                     "b(3,5), 1, l(0,5,3,2)", "take_along_dim.default: x(3,5), l(0,5,3,2), 1",
                     "take_along_dim.default: x(3,5), l(0,5,1,2), 1", "take_along_dim.default: x(3,5), l(0,15,4)"}};
}
}  // namespace tosaic
