// SPDX-License-Identifier: Apache-2.0
#include "read/program_file.h"

namespace tosaic {
namespace {

// A graph of text is its own exported graph: nodes without a name there are called after what they give.
void name_nodes(Graph& graph) {
  for (Node& node : graph.nodes) {
    if ((node.loc && !node.loc->name.empty()) || node.outputs.empty() || node.outputs[0] == no_value) continue;
    auto loc = node.loc ? std::make_shared<Loc>(*node.loc) : std::make_shared<Loc>();
    loc->name = graph[node.outputs[0]].name;
    loc->op = node.op.text();
    node.loc = std::move(loc);
  }
}

}  // namespace

Result<ExportedProgram> read_program_file(const Bytes& file, const std::string& name, const Sink& sink) {
  if (!file.text().starts_with("graph ")) return read_pt2(file, name, sink);
  ExportedProgram program;
  Method& method = program.methods.emplace_back();
  method.name = "forward";
  TOSAIC_TRY(method.graph, parse(file.text(), name));
  name_nodes(method.graph);
  return program;
}

}  // namespace tosaic
