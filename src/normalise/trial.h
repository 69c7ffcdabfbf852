// SPDX-License-Identifier: Apache-2.0
// One ATen node, lowered by itself in a scratch graph: how every question about a node is answered.
#pragma once
#include <optional>
#include <vector>

#include "ops/op.h"

namespace tosaic {

struct Trial {
  Graph graph;                    // inputs: the node's operands that are not constants, in order
  std::vector<ValueId> operands;  // the scratch value of each of the node's operands
  std::vector<ValueId> results;   // one per output
};

// Lowers node `n` of `graph` as float (no rules of quantisation). `fold`: evaluate what is constant.
Result<Trial> try_node(const Graph& graph, const Node& node, bool fold);

}  // namespace tosaic
