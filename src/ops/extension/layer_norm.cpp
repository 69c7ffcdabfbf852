// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/extension.h"

namespace tosaic::extension {
namespace {

std::vector<ValueId> to_tosa(Definition& d) {
  const ValueId x = d.operand(norm::input);
  return {norm::normalised(d, d.sub(x, norm::mean(d, x)))};
}

}  // namespace

Op extension_layer_norm() {
  return {.row = norm::row("layer_norm", "rows of zero mean and unit variance, then a weight and a bias"),
          .to_tosa = to_tosa,
          .forms = norm::forms};
}

}  // namespace tosaic::extension
