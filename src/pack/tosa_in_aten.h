// SPDX-License-Identifier: Apache-2.0
// TOSA said in PyTorch: each of its operators that lowerings use for what runs outside delegates is one or two calls of
// core ATen. So an operator without a kernel of its own is a few calls of kernels that every runtime has.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic::packing {

// The node as the ATen calls that its lowering amounts to, as far as its results are `used`; new values are added to
// the graph. nullopt: it does not lower, or to something without such a call.
std::optional<std::vector<Node>> tosa_in_aten(Graph& graph, const Node& node, const std::vector<char>& used);

}  // namespace tosaic::packing
