// SPDX-License-Identifier: Apache-2.0
// Inputs and results that cross the bus in 16 bits, of programs that are kept in 16 bits.
#pragma once
#include <functional>
#include <vector>

#include "ir/graph.h"

namespace tosaic::shaders {

// Large f32 ones: of inputs those that only products read, which round them anyway; of results those that would be kept
// in 16 bits if they were none. `stays`: what is kept in 32 bits for another reason. What may be a buffer, a result
// that the next run has as its input, is alike on both sides, so that it can stay on the device.
std::vector<ValueId> narrow_interface(const Graph& graph, const std::function<bool(ValueId)>& stays);

}  // namespace tosaic::shaders
