// SPDX-License-Identifier: Apache-2.0
// A graph as a report shows it.
#pragma once
#include <string>

#include "ir/graph.h"
#include "report/contents.h"

namespace tosaic::reporting {

// The values keep their order, those that no node reads or makes are left out. Bodies of control flow are added behind
// it, as graphs of their own. Placements are the caller's to add: nodes keep their order.
std::vector<ShownGraph> shown(const Graph& graph, const std::string& name, ShownGraph::Kind kind);

// At its largest; 0: no bound is known.
std::uint64_t most_bytes(const TensorType& type);

}  // namespace tosaic::reporting
