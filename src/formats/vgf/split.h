// SPDX-License-Identifier: Apache-2.0
// A graph cut into what a VGF file runs one after the other: graph segments of TOSA operators, and a compute segment
// for each custom shader. Without shaders there is one segment.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace tosaic::vgf {

bool is_shader(const Node& node);  // a CUSTOM of the shaders' domain

// `graph` has all values of the whole graph under their numbers there, the nodes of the segment, and what the segment
// takes from and gives to others. Of a shader: its one node.
struct Part {
  bool shader = false;
  Graph graph;
};
struct Parts {
  Graph whole;  // the graph, with copies of the constants and inputs that a shader or the caller takes as they are
  std::vector<Part> list;
};
Parts split(const Graph& graph);

}  // namespace tosaic::vgf
