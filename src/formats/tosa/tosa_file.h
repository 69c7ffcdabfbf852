// SPDX-License-Identifier: Apache-2.0
// The TOSA 1.0 flatbuffer (.tosa): one Graph per region, constants inside. Attribute tables are filled from the
// operator rows of ops/tosa.
#pragma once
#include <string>

#include "base/bytes.h"
#include "ir/graph.h"

namespace tosaic::tosa_file {

// Graph inputs and outputs keep their names; node locations are written as OpLocation text. Control-flow
// bodies become further regions. Deterministic.
Result<Bytes> write(const Graph& graph);
// Checked reading: every name, size, enum and union; other versions are refused by name. `name` is for messages.
// The result passes ir verify, not necessarily tosa::verify_graph.
Result<Graph> read(const Bytes& file, const std::string& name);

}  // namespace tosaic::tosa_file
