// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return b.aten(aten::op::_to_copy, {call.tensor("self")},
                {{"dtype", creation::dtype_of_tensor(call.tensor("other"))}});
}

std::optional<Node> core(const CoreCall& call) {
  return call.call(aten::op::_to_copy, {call.operand(0)}, {{"dtype", call.out().dtype}});
}
}  // namespace

AtenOp aten_type_as() {
  return {.schemas = {"type_as(Tensor self, Tensor other) -> Tensor"},
          .summary = "self in the dtype of other",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"i(-5,5,6), x(2)", "x(6), x(2)",
                     "x(6), i(0,2,2) # integer=quantise.cast-to-integer: quantised values do not become integers "
                     "inside a delegate"},
          .core = core};
}
}  // namespace tosaic
