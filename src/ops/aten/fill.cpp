// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  creation::check_size(call, x.shape());
  if (call.overload() == "Scalar") return b.filled(call.number("value"), creation::dtype_of_tensor(x), x.shape());
  Val value = call.tensor("value");
  if (!value.type().quantised()) value = b.cast(value, creation::dtype_of_tensor(x));
  return b.broadcast_to(value, x.shape());
}
}  // namespace

AtenOp aten_fill() {
  return {.schemas = {"fill.Scalar(Tensor self, Scalar value) -> Tensor",
                      "fill.Tensor(Tensor self, Tensor value) -> Tensor",
                      "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
                      "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)"},
          .summary = "a tensor of one value, shaped like self",
          .rule = Rule::index,
          .overload_rules = {{"Tensor", Rule::joined}},
          .lower = {lower},
          .domain = {"x(2,3), 1.5", "i(0,5,4), 3", "b(4), 1", "Tensor: x(2,3), x()"}};
}
}  // namespace tosaic
