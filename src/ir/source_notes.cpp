// SPDX-License-Identifier: Apache-2.0
#include "ir/source_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tosaic {
namespace {

void count(const Graph& graph, SourceNotes& notes) {
  for (const Node& node : graph.nodes) {
    for (const Graph& body : node.regions) count(body, notes);
    if (!node.loc) continue;
    ++notes.nodes;
    notes.lines += !node.loc->place.text.empty();
    if (!node.loc->place.file.empty()) notes.files.insert(node.loc->place.file);
  }
}

}  // namespace

SourceNotes source_notes(const Graph& graph) {
  SourceNotes notes;
  count(graph, notes);
  return notes;
}

std::string text_of(const SourceNotes& notes) {
  if (notes.nodes == 0) return "";
  constexpr std::size_t most = 3;
  std::vector<std::string> files(notes.files.begin(), notes.files.end());
  const std::size_t more = files.size() > most ? files.size() - most : 0;
  files.resize(files.size() - more);
  std::string text =
      fmt::format("{} operator{} say{} from which line of the model {}", notes.nodes, notes.nodes == 1 ? "" : "s",
                  notes.nodes == 1 ? "s" : "", notes.nodes == 1 ? "it comes from" : "they come from");
  if (!files.empty())
    text += fmt::format(" ({}{})", fmt::join(files, ", "), more ? fmt::format(" and {} more files", more) : "");
  if (notes.lines) text += fmt::format(", {} with the source line", notes.lines);
  return text;
}

Graph without_source_notes(Graph graph) {
  for (Node& node : graph.nodes) {
    node.loc = nullptr;
    for (Graph& body : node.regions) body = without_source_notes(std::move(body));
  }
  return graph;
}

}  // namespace tosaic
