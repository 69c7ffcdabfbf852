// SPDX-License-Identifier: Apache-2.0
// Values that are the bytes of others.
#pragma once
#include <span>

#include "ir/graph.h"
#include "ir/tosa_operators.h"

namespace tosaic::plan {

// RESHAPE and IDENTITY: the same bytes.
inline bool is_view(const Node& node) { return node.op == tosa::op::reshape || node.op == tosa::op::identity; }

// What makes a value; null: nothing does. `producer`: of the graph (producers()).
inline const Node* maker(const Graph& graph, std::span<const std::int32_t> producer, ValueId v) {
  return producer[v] < 0 ? nullptr : &graph.nodes[static_cast<std::size_t>(producer[v])];
}
// The value that `v` is a view of, or itself.
inline ValueId skip_views(const Graph& graph, std::span<const std::int32_t> producer, ValueId v) {
  for (const Node* node = maker(graph, producer, v); node && is_view(*node); node = maker(graph, producer, v))
    v = node->inputs[0];
  return v;
}

}  // namespace tosaic::plan
