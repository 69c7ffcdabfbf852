// SPDX-License-Identifier: Apache-2.0
// A graph as an executor asks about it: who makes each value, who reads it, and who may see it.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic::plan {

struct Uses {
  const Graph& graph;
  std::vector<std::int32_t> producer;             // node of each value, -1: input or constant
  std::vector<std::vector<std::uint32_t>> users;  // nodes that read each value
  std::vector<bool> visible;                      // graph outputs and observed values: they get memory of their own

  explicit Uses(const Graph& graph, std::span<const ValueId> observed = {});

  const Node& node(std::uint32_t n) const { return graph.nodes[n]; }
  const TensorType& type(ValueId v) const { return graph[v].type; }
  bool constant(ValueId v) const { return v != no_value && graph[v].is_constant(); }
  bool only_first_computed(const Node& node) const;  // all other operands are constants
  // The only node that reads `value`, when nobody else may see it: then the two may be computed as one.
  std::optional<std::uint32_t> only_user(ValueId value) const;
};

}  // namespace tosaic::plan
