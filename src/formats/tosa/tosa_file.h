// SPDX-License-Identifier: Apache-2.0
// The TOSA 1.0 flatbuffer (.tosa): one Graph per region, constants inside. Attribute tables are filled by
// the schema's own reflection, which a test holds against the operator rows of ops/tosa.
#pragma once
#include <string>

#include "base/bytes.h"
#include "ir/graph.h"

namespace tosaic::tosa_file {

// Values keep their names; the graph itself becomes "main", and bodies of equal names get numbers. Node locations
// are written as OpLocation text, control-flow bodies as further regions. Deterministic.
Result<Bytes> write(const Graph& graph);
// Checked reading: every name, size, enum and union; other versions are refused by name. `name` is for messages.
// The result passes ir verify, not necessarily tosa::verify_graph.
Result<Graph> read(const Bytes& file, const std::string& name);
// Do the first bytes say that it is a TOSA flatbuffer?
inline bool is_tosa(const Bytes& file) { return file.size() >= 8 && file.text().substr(4, 4) == "TOSA"; }

}  // namespace tosaic::tosa_file
