// SPDX-License-Identifier: Apache-2.0
// The weights of the operation that starts now: read, decoded, arranged, packed, and kept for the next run.
#pragma once
#include "ethosu/context.h"

namespace tosaic::ethosu {

Result<std::shared_ptr<const DecodedWeights>> load_weights(Context& context, bool depthwise, std::int64_t outputs,
                                                           std::int64_t inputs, const Kernel& kernel, int ifm_bits);
// Fills in what is derived from the dense weights.
void finish_weights(DecodedWeights& weights, bool depthwise);

}  // namespace tosaic::ethosu
