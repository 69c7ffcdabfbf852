// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/dense_convolution.h"

namespace tosaic::tosa {
Op tosa_conv3d() {
  return dense_convolution_row("conv3d", 4, "3-D convolution of NDHWC by ODHWI weights, plus bias", 3);
}
}  // namespace tosaic::tosa
