// SPDX-License-Identifier: Apache-2.0
// The TOSA 1.0 flatbuffer (.tosa): one Graph per region, constants inside. Attribute tables are filled by
// the schema's own reflection, which a test holds against the operator rows of ops/tosa.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rope.h"
#include "ir/graph.h"

namespace tosaic::tosa_file {

// Values keep their names; the graph itself becomes "main", and bodies of equal names get numbers. Node locations
// are written as OpLocation text, control-flow bodies as further regions. Large constants are not copied.
// Deterministic.
Result<Rope> write(const Graph& graph);
// Where constants lie outside the file, by the names of their values: packed as the file would hold them.
struct Parts {
  Rope file;
  std::vector<std::pair<std::string, Bytes>> outside;
};
// Every constant of at least so many bytes lies outside; the file says how many they are, and nothing else.
Result<Parts> write_parts(const Graph& graph, std::uint64_t least_bytes);
// Does it fit one flatbuffer with everything in it?
bool fits(const Graph& graph);

// The compile spec of a delegate that says with what the keys of its outside constants begin; their names follow.
inline constexpr std::string_view outside_spec = "constants";
// Null Bytes: there is no such constant.
using FindOutside = std::function<Bytes(const std::string& name)>;
// Checked reading: every name, size, enum and union; other versions are refused by name. `name` is for messages.
// The result passes ir verify, not necessarily tosa::verify_graph.
Result<Graph> read(const Bytes& file, const std::string& name);
Result<Graph> read(const Bytes& file, const std::string& name, const FindOutside& outside);
// Do the first bytes say that it is a TOSA flatbuffer?
inline bool is_tosa(const Bytes& file) { return file.size() >= 8 && file.text().substr(4, 4) == "TOSA"; }

}  // namespace tosaic::tosa_file
