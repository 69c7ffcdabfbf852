// SPDX-License-Identifier: Apache-2.0
#include "api/inspect_graph.h"

#include <fmt/format.h>
#include <map>

#include "formats/tosa/tosa_file.h"
#include "ir/source_notes.h"

namespace tosaic {
namespace {

std::string types_json(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text;
  for (ValueId v : values)
    text += fmt::format("{}{{\"name\": {}, \"type\": {}}}", text.empty() ? "" : ", ", json_quote(graph[v].name),
                        json_quote(to_string(graph[v].type)));
  return "[" + text + "]";
}

}  // namespace

std::string counted(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op.text()];
  std::string text;
  for (const auto& [op, n] : counts) text += fmt::format("  {:>5} {}\n", n, op);
  return text;
}

std::string graph_json(const Graph& graph) {
  std::map<std::string, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.op.text()];
  std::string ops;
  for (const auto& [op, n] : counts) ops += fmt::format("{}{}: {}", ops.empty() ? "" : ", ", json_quote(op), n);
  return fmt::format("{{\"name\": {}, \"inputs\": {}, \"outputs\": {}, \"nodes\": {}, \"operators\": {{{}}}}}",
                     json_quote(graph.name), types_json(graph, graph.inputs), types_json(graph, graph.outputs),
                     graph.nodes.size(), ops);
}

Inspection inspect_tosa(const Graph& graph, const Bytes& file, const std::string& name) {
  // The patch and "draft" mean nothing of 1.0: writers leave the schema's defaults there.
  std::string version = tosa_file::version_of(file);
  if (version.starts_with("1.0.")) version = "1.0";
  const std::size_t bytes = file.size();
  Inspection out;
  const SourceNotes source = source_notes(graph);
  const std::string told = text_of(source);
  out.text = fmt::format("{}: TOSA {} graph, {} operators, {} bytes\n{}{}\n{}", name, version, graph.nodes.size(),
                         bytes, counted(graph),
                         told.empty() ? "" : "  source: " + told + " (--strip leaves that out)\n", print(graph));
  out.json =
      fmt::format("{{\"format\": \"tosa\", \"version\": {}, \"bytes\": {}, \"source_lines\": {}, \"graph\": {}}}",
                  json_quote(version), bytes, source.lines, graph_json(graph));
  return out;
}

}  // namespace tosaic
