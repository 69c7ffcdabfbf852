// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return creation::filled(call, call.number("fill_value"), creation::dtype_of_tensor(x), x.shape());
}
}  // namespace

AtenOp aten_full_like() {
  return {.schemas = {"full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor"},
          .summary = "a tensor of one value, shaped like self",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(2,3), 1.5", "i(0,5,4), 3", "x(2,3), 1, dtype=bool", "b(4), 1"}};
}
}  // namespace tosaic
