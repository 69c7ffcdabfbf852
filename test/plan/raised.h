// SPDX-License-Identifier: Apache-2.0
// What tests of `raise_...` share: graphs from text that is changed in one place, and the operators of what they
// become.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include <string>
#include <vector>

#include "ir/text.h"

namespace tosaic::plan {

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Empty, and a failure: the text is none.
inline Graph parsed(const std::string& text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : render(graph.error(), false));
  return graph.ok() ? *std::move(graph) : Graph();
}

inline std::vector<ValueId> values_called(const std::vector<std::string>& names, const Graph& graph) {
  std::vector<ValueId> found;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (std::ranges::find(names, graph.values[v].name) != names.end()) found.push_back(v);
  return found;
}

inline std::string operators_of(const Graph& graph) {
  std::string operators;
  for (const Node& node : graph.nodes) operators += (operators.empty() ? "" : " ") + std::string(node.op.text());
  return operators;
}

}  // namespace tosaic::plan
