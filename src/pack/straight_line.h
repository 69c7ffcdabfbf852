// SPDX-License-Identifier: Apache-2.0
// A program's instructions stand in one line: branches and loops become jumps over, and back to, what their bodies
// compute.
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace tosaic::packing {

// Nodes that are no calls. A label's operands are needed until there, a start's results from there on.
inline constexpr std::string_view label = "program.label";      // attr at
inline constexpr std::string_view jump_false = "program.jump";  // attr to; no operand: always
inline constexpr std::string_view start = "program.start";      // results
inline constexpr std::string_view copy = "program.copy";        // one operand, one result, which is written again

// `graph` with the nodes of its branches' and loops' bodies in their places. A branch's results are written in either
// body, a loop's in every turn: they never lie where an operand does.
void put_in_line(Graph& graph);

}  // namespace tosaic::packing
