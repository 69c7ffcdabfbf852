// SPDX-License-Identifier: Apache-2.0
// Runs the float program on the samples, and looks at the channels of some of its values. Private to quantise/.
#pragma once
#include <map>
#include <vector>

#include "quantise/channel_sizes.h"
#include "quantise/quantise.h"

namespace tosaic {

using ObservedChannels = std::map<ValueId, ChannelSizes>;

// `dim_of`: the dim of each value's channels; what cannot be run is left out. `most`: of the samples, as many.
// Errors: compile.cancelled, those of running it.
Result<ObservedChannels> observe_channels(const Graph& graph, const std::map<ValueId, int>& dim_of,
                                          const std::vector<std::vector<Tensor>>& samples, std::size_t most,
                                          const QuantiseOptions& options);

}  // namespace tosaic
