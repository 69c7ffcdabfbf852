// SPDX-License-Identifier: Apache-2.0
// Graphs, as `tosaic inspect` shows them.
#pragma once
#include <string>

#include "ir/graph.h"
#include "tosaic/files.hpp"

namespace tosaic {

// How often each operator is called, a line each.
std::string counted(const Graph& graph);
std::string graph_json(const Graph& graph);
// `file`: what the graph was read from.
Inspection inspect_tosa(const Graph& graph, const Bytes& file, const std::string& name);

}  // namespace tosaic
