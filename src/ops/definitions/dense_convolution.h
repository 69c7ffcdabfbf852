// SPDX-License-Identifier: Apache-2.0
// CONV2D and CONV3D: every output channel sees every input channel. Private to src/ops.
#pragma once
#include "ops/definitions/convolution.h"

namespace tosaic::tosa {

// spatial: 2 or 3 axes between batch and channels.
Op dense_convolution_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, int spatial);

}  // namespace tosaic::tosa
