// SPDX-License-Identifier: Apache-2.0
#include "ops/unknown_operator.h"

#include <fmt/format.h>

namespace tosaic {

Diagnostic unknown_operator(Operator op) {
  if (op.is_aten() && op.base().ends_with("_backward"))
    return error("aten.training", fmt::format("operator {} computes a gradient, which programs for training want", op))
        .hint("export the model's forward alone, in eval mode");
  if (op.is_aten() && op.base().starts_with("resize"))
    return error("aten.resized",
                 fmt::format("operator {} resizes a tensor in place, and does not define its new elements", op))
        .hint("make a tensor of that size: reshape, a slice, or torch.nn.functional.pad");
  return error("aten.unknown-operator", fmt::format("operator {} is not known to tosaic", op));
}

}  // namespace tosaic
