// SPDX-License-Identifier: Apache-2.0
// Centring: a tensor of integers has one zero point, so a channel whose values lie far from zero takes range from all
// others. Where the layer that makes a channel moves it to the middle by its bias, and those that read it take that
// back by theirs, the floats are the same but for their last digits, and the steps are smaller. (Wei et al., "Outlier
// Suppression+", EMNLP 2023, section 4.1, who move the operands of language models; Nagel et al., ICCV 2019, section
// 4.1.3, who move what lies above a ReLU's bound. Here sums of such channels move as well: a MobileNetV2's residuals.)
#pragma once
#include <vector>

#include "quantise/quantise.h"

namespace tosaic {

// Changes biases of `graph`, whose states are tensors, its composites expanded. `inner`: as in Expanded.
Status centre_channels(Graph& graph, const std::vector<char>& inner, const std::vector<std::vector<Tensor>>& samples,
                       const QuantiseOptions& options);

}  // namespace tosaic
