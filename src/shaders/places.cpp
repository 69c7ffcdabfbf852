// SPDX-License-Identifier: Apache-2.0
#include "shaders/places.h"

#include <algorithm>
#include <unordered_map>

namespace tosaic::shaders {
namespace {

class Places {
 public:
  explicit Places(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes)
      for (ValueId v : node.outputs) made_by_.emplace(v, &node);
    for (const Node& node : graph.nodes)
      if (node.op == "tosa.gather" || node.op == "tosa.scatter")
        take(node.inputs.at(1), graph[node.inputs.at(0)].type.shape[1]);
  }

  std::optional<Dim> rows_of(ValueId input) const {
    const auto found = rows_.find(input);
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  // Of two tables the smaller one counts, where both are numbers.
  void take(ValueId v, const Dim& rows) {
    const auto made = made_by_.find(v);
    if (made != made_by_.end()) {
      if (keeps_all(*made->second)) take_operands(*made->second, rows);
      return;
    }
    const auto [known, fresh] = rows_.emplace(v, rows);
    if (fresh || !rows.is_number()) return;
    if (!known->second.is_number() || rows.value() < known->second.value()) known->second = rows;
  }

  void take_operands(const Node& node, const Dim& rows) {
    const std::size_t moved = node.op == "tosa.concat" ? node.inputs.size() : 1;  // the others are shapes
    for (std::size_t i = 0; i < moved; ++i) take(node.inputs[i], rows);
  }

  // Every element of the operands is one of the result's, as it is. (A slice leaves some out, which may be anything.)
  static bool keeps_all(const Node& node) {
    const char* const movers[] = {"tosa.reshape", "tosa.transpose", "tosa.tile",
                                  "tosa.reverse", "tosa.identity",  "tosa.concat"};
    return std::ranges::find(movers, node.op) != std::end(movers);
  }

  const Graph& graph_;
  std::unordered_map<ValueId, const Node*> made_by_;
  std::unordered_map<ValueId, Dim> rows_;
};

}  // namespace

std::vector<std::optional<Dim>> rows_of_inputs(const Graph& graph) {
  const Places places(graph);
  std::vector<std::optional<Dim>> rows;
  for (ValueId v : graph.inputs) rows.push_back(graph[v].type.dtype == DType::i32 ? places.rows_of(v) : std::nullopt);
  return rows;
}

}  // namespace tosaic::shaders
