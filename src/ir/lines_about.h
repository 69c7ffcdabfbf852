// SPDX-License-Identifier: Apache-2.0
// What a graph says of one node or value, as lines of its text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// One line of the text: a node without its bodies; a value with its type, and its elements if it is a constant.
std::string line_of(const Graph& graph, const Node& node);
std::string line_of(const Graph& graph, ValueId value);
// "stride=[2, 2], groups=1".
std::string attributes_of(const Node& node);

// The input or constant of that name, the node whose result it is, and the nodes that stand for the exported node of
// that name; in bodies, too.
std::vector<std::string> lines_about(const Graph& graph, std::string_view name);

}  // namespace tosaic
