// SPDX-License-Identifier: Apache-2.0
// When a buffer's new content may be written where the old one lies.
#pragma once
#include "ir/graph.h"

namespace tosaic::packing {

// A delegate makes the new content of the old one, and is the last to read that; nobody but the buffer has the new one.
// The graph is in line (straight_line.h); with jumps in it nothing is known of what comes last.
bool may_write_in_place(const Graph& graph, const State& state);

}  // namespace tosaic::packing
