// SPDX-License-Identifier: Apache-2.0
#include "ops/unknown_operator.h"

#include <fmt/format.h>

namespace tosaic {

Diagnostic unknown_operator(std::string_view op) {
  const std::string_view name = op.substr(0, op.rfind('.'));
  if (op.starts_with("aten.") && name.ends_with("_backward"))
    return error("aten.training", fmt::format("operator {} computes a gradient, which programs for training want", op))
        .hint("export the model's forward alone, in eval mode");
  if (op.starts_with("aten.resize"))
    return error("aten.resized",
                 fmt::format("operator {} resizes a tensor in place, and does not define its new elements", op))
        .hint("make a tensor of that size: reshape, a slice, or torch.nn.functional.pad");
  return error("aten.unknown-operator", fmt::format("operator {} is not known to tosaic", op));
}

}  // namespace tosaic
