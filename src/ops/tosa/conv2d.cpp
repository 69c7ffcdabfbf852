// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/dense_convolution.h"

namespace tosaic::tosa {
Op tosa_conv2d() { return dense_convolution_row("conv2d", 3, "2-D convolution of NHWC by OHWI weights, plus bias", 2); }
}  // namespace tosaic::tosa
