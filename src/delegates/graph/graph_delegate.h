// SPDX-License-Identifier: Apache-2.0
// A payload that is a TOSA graph in a file format, run by the CPU executor or the interpreter: what the TOSA and the
// VGF delegate have in common.
#pragma once
#include "contract/serve.h"
#include "ir/graph.h"

namespace tosaic::delegates {

using ReadGraph = Result<Graph> (*)(const Bytes& payload, const std::string& name);

// The server's `open`, for a format's reader.
Result<std::unique_ptr<contract::Payload>> open_graph(const contract::Opening& opening, ReadGraph read, int& status);

}  // namespace tosaic::delegates
