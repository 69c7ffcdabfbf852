// SPDX-License-Identifier: Apache-2.0
// torch.maximum(a, b, out=c) writes into c what torch.maximum(a, b) gives.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace tosaic {

// The call that gives what `node` writes into its last operand; none where `node` is no such call, tosaic does not know
// that other call, or the operand has another type than its result.
std::optional<Node> without_out(const Graph& graph, const Node& node);

}  // namespace tosaic
