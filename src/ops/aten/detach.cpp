// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) { return call.tensor("self"); }
}  // namespace

AtenOp aten_detach() {
  return {.schemas = {"detach(Tensor(a) self) -> Tensor(a)", "detach_(Tensor(a!) self) -> Tensor(a!)"},
          .summary = "self, without gradients",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3)", "i(0,5,4)"}};
}
}  // namespace tosaic
