// SPDX-License-Identifier: Apache-2.0
// Stage 4, partition: which nodes the target takes (proved by lowering each by itself), grouped into convex
// regions. Whatever stays behind keeps the reason; bodies of what stays behind are partitioned by themselves.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

// What somebody found out about a node besides, as its attributes; nothing of them is left in a partition.

struct Placement {
  int region = -1;    // -1: stays behind
  Diagnostic reason;  // why, when it stays behind
};

struct Partition {
  Graph outer;                 // the nodes that stay, and one "delegate" node per region, attr region=k; in bodies, too
  std::vector<Graph> regions;  // ATen graphs; inputs and outputs as their delegate node's
  std::vector<Placement> placements;  // one per node of the graph that was partitioned
};

// Asks about the nodes of a graph, one target after another; what the targets have in common is found once.
class Placer {
 public:
  // `graph` has to outlive it. `several`: more than one target will be asked about.
  explicit Placer(const Graph& graph, bool several = false);
  ~Placer();
  // One answer per node: region 0 where the target takes it.
  std::vector<Placement> place(const tosa::Spec& spec);

 private:
  struct Answer;
  Status about(std::size_t node, const tosa::Spec& spec);
  Status lowers(const Node& call, Answer& answer, const tosa::Spec& spec) const;
  Status sound(const Node& call, Answer& answer) const;

  const Graph& graph_;
  const bool several_;
  const std::vector<char> used_;
  std::unordered_map<std::string, std::unique_ptr<Answer>> by_question_;
  std::vector<Answer*> answers_;  // one per node
};

// Also as the attributes above say.
Partition partition(const Graph& graph, const tosa::Spec& spec);
// Outputs that are inputs, constants or another output become copies of them: each is then the result of a node of its
// own.
void compute_outputs(Graph& graph);
// The whole graph as one region, whose inputs and outputs are the graph's, in their order. Errors: the reason of the
// first node that the target does not take; target.state. Its outputs must be results of nodes.
Result<Partition> whole(const Graph& graph, const tosa::Spec& spec);

// Kernels outside the delegates compute in PyTorch's types: what `normalise` narrowed (its values' names) is int64
// again for them, with a conversion where a delegate reads or writes it as int32.
void widen_outside(Graph& outer, const std::vector<std::string>& narrowed);

}  // namespace tosaic
