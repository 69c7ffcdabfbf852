// SPDX-License-Identifier: Apache-2.0
// A payload that is a TOSA graph in a file format, or becomes one, run by the CPU executor or the interpreter: what the
// delegates for the CPU have in common.
#pragma once
#include "contract/serve.h"
#include "ir/graph.h"

namespace tosaic::delegates {

using ReadGraph = Result<Graph> (*)(const contract::Opening& opening);

// The server's `open`, for a format's reader.
Result<std::unique_ptr<contract::Payload>> open_graph(const contract::Opening& opening, ReadGraph read, int& status);
// For a graph that our own lowering made, which may compute in PyTorch's types. `flags` (tosaic_tensor_flags) are those
// of every tensor.
Result<std::unique_ptr<contract::Payload>> open_lowered(const contract::Opening& opening, Graph graph,
                                                        std::uint32_t flags, int& status);

}  // namespace tosaic::delegates
