// SPDX-License-Identifier: Apache-2.0
// When most memory is needed, and what for.
#pragma once
#include "ir/graph.h"
#include "report/contents.h"

namespace tosaic::reporting {

// The peak of what is alive, from the buffers.
void set_peak(ShownMemory& memory);

// Of a TOSA graph whose operators run one after another: what they read and write, constants not counted, and what are
// views of others neither. `shown`: how the report shows the graph, and its index in the contents.
ShownMemory activations(const Graph& graph, const ShownGraph& shown, std::size_t index);

}  // namespace tosaic::reporting
