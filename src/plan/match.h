// SPDX-License-Identifier: Apache-2.0
// Does a graph compute a value as the last node of another graph does: by the same operators of the same types,
// attributes and constants?
#pragma once
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic::plan {

struct Match {
  std::vector<ValueId> value;     // of the graph, by that of the pattern
  std::set<std::uint32_t> nodes;  // of the graph
};
// `value` as what the last node of `pattern` makes. An input of the pattern is any value, of whatever type: what is
// made of it has the types of the pattern. The operands of sums and products may stand in either order. `producer`: of
// the graph (producers()).
std::optional<Match> match(const Graph& pattern, const Graph& graph, std::span<const std::int32_t> producer,
                           ValueId value);

}  // namespace tosaic::plan
