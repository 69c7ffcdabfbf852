// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  if (call.flag("train") && call.number("p") > 0)
    b.refuse("aten.training", "dropout in training mode is random: export the model in eval mode");
  return call.schema().argument("input") ? call.tensor("input") : call.tensor("self");
}
}  // namespace

AtenOp aten_dropout() {
  return {.schemas = {"dropout(Tensor input, float p, bool train) -> Tensor",
                      "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)"},
          .summary = "self: nothing is dropped outside training",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4,4), 0.5, False", "x(2,3,4,4), 0.0, True"}};
}
}  // namespace tosaic
