// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/extension.h"

namespace tosaic::extension {
namespace {

std::vector<ValueId> to_tosa(Definition& d) { return {norm::normalised(d, d.operand(norm::input))}; }

}  // namespace

Op extension_rms_norm() {
  return {.row = norm::row("rms_norm", "rows divided by their root mean square, then a weight and a bias"),
          .to_tosa = to_tosa,
          .forms = norm::forms};
}

}  // namespace tosaic::extension
