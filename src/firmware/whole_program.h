// SPDX-License-Identifier: Apache-2.0
// A method of a program as one TOSA graph: the delegates' graphs in their places, and between them what the nodes
// outside are lowered to.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic::firmware {

struct WholeProgram {
  Graph graph;  // tosa.* nodes, and a tosa.custom for each delegate that another device runs: operator_name NAME_npuK
  std::size_t inputs = 0, outputs = 0;  // of the user; behind them come the states'
  std::vector<State> states;
};

// `outer`: the graph around the delegates. `lowered`: theirs, by number. `elsewhere`: they run on another device, and
// are called by `name` and number. Errors: firmware.sizes, firmware.control-flow, those of lowering, at the node.
Result<WholeProgram> whole_program(const Graph& outer, std::span<const Graph> lowered, bool elsewhere,
                                   const std::string& name);

}  // namespace tosaic::firmware
