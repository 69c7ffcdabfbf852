// SPDX-License-Identifier: Apache-2.0
// Graph -> Graphviz's text, for people who want to see it: `dot -Tsvg graph.dot -o graph.svg`.
#pragma once
#include <string>

#include "ir/graph.h"

namespace tosaic {

// A box per node, an arrow per operand with its type; bodies of control flow are frames. Constants are left out.
std::string dot(const Graph& graph);

}  // namespace tosaic
