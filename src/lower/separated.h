// SPDX-License-Identifier: Apache-2.0
// The graphs that a program becomes at several sizes, such that one can be held against the other. Private to lower/.
#pragma once
#include "ir/graph.h"

namespace tosaic {

// With a constant of its own for each operand, and values in the order of nodes: shapes that are equal at some sizes by
// chance are one constant there.
Graph separated(const Graph& graph);

}  // namespace tosaic
