// SPDX-License-Identifier: Apache-2.0
// A program's instructions stand in one line: branches and loops become jumps over, and back to, what their bodies
// compute.
#pragma once
#include "ir/graph.h"
#include "ir/program_operators.h"

namespace tosaic::packing {

// Nodes that are no calls (program::op). A label (attr at) needs its operands until there, a start's results are needed
// from there on. A jump (attr to) goes where its operand is false, without one always. A copy writes its one result
// again.

// `graph` with the nodes of its branches' and loops' bodies in their places. A branch's results are written in either
// body, a loop's in every turn: they never lie where an operand does.
void put_in_line(Graph& graph);

}  // namespace tosaic::packing
