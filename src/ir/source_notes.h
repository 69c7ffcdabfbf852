// SPDX-License-Identifier: Apache-2.0
// What a graph says of its author's source, and forgetting it: files travel further than their author thinks.
#pragma once
#include <set>
#include <string>

#include "ir/graph.h"

namespace tosaic {

struct SourceNotes {
  std::size_t nodes = 0;        // that say where they come from, those of bodies among them
  std::size_t lines = 0;        // with the source line's own text
  std::set<std::string> files;  // as their author's machine calls them
};
SourceNotes source_notes(const Graph& graph);
// "12 operators name a place in /home/me/model.py, 12 of them quote its line"; "": it says nothing.
std::string text_of(const SourceNotes& notes);
// Constants are shared, not copied.
Graph without_source_notes(Graph graph);

}  // namespace tosaic
