// SPDX-License-Identifier: Apache-2.0
// Stage 4, partition: which nodes the target takes (proved by lowering each by itself), grouped into convex
// regions. Whatever stays behind keeps the reason.
#pragma once
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/tosa_op.h"

namespace tosaic {

struct Placement {
  int region = -1;    // -1: stays behind
  Diagnostic reason;  // why, when it stays behind
};

struct Partition {
  Graph outer;                        // the nodes that stay, and one "delegate" node per region, attr region=k
  std::vector<Graph> regions;         // ATen graphs; inputs and outputs as their delegate node's
  std::vector<Placement> placements;  // one per node of the graph that was partitioned
};

Partition partition(const Graph& graph, const tosa::Spec& spec);

// Kernels outside the delegates compute in PyTorch's types: what `normalise` narrowed (its values' names) is int64
// again for them, with a conversion where a delegate reads or writes it as int32.
void widen_outside(Graph& outer, const std::vector<std::string>& narrowed);

}  // namespace tosaic
