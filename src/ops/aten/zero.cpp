// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = call.tensor("self");
  return creation::filled(call, 0.0, creation::dtype_of_tensor(x), x.shape());
}
}  // namespace

AtenOp aten_zero() {
  return {.schemas = {"zero(Tensor self) -> Tensor", "zero_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "zeros, shaped like self",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(2,3)", "i(0,5,4)", "b(4)"}};
}
}  // namespace tosaic
