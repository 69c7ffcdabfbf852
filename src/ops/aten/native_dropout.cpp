// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
// train=None is training, too.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  if ((!call.has("train") || call.flag("train")) && call.number("p") > 0)
    throw Refusal{located(error("aten.training", "native_dropout in training mode draws random numbers")
                              .hint("export the model in eval mode: model.eval()"),
                          b.loc())};
  return {x, b.filled(1, DType::boolean, x.shape())};
}
}  // namespace

AtenOp aten_native_dropout() {
  return {.schemas = {"native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)"},
          .summary = "self, and a mask of what stays: nothing is dropped outside training",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3), 0.5, False", "x(2,3), 0.0, True",
                     "x(2,3), 0.5, True # refused=aten.training: what is dropped is drawn anew in each run"}};
}
}  // namespace tosaic
