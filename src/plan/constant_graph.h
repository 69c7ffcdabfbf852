// SPDX-License-Identifier: Apache-2.0
// What computes a value of constants alone, as a graph of its own.
#pragma once
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// It has no input and the value as its only output. `producer`: of the graph (producers()).
Graph constant_graph(const Graph& graph, std::span<const std::int32_t> producer, ValueId value);

}  // namespace tosaic::plan
