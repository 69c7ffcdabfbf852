// SPDX-License-Identifier: Apache-2.0
#include "normalise/trial.h"

namespace tosaic {

Result<Trial> try_node(const Graph& graph, const Node& node, bool fold) {
  Trial trial;
  Builder builder(trial.graph);
  builder.fold(fold);
  builder.set_loc(node.loc);
  std::vector<std::optional<Val>> operands;
  for (ValueId v : node.inputs) {
    if (v == no_value) {
      trial.operands.push_back(no_value);
      operands.push_back(std::nullopt);
      continue;
    }
    ValueId id = trial.graph.add_value("operand." + std::to_string(operands.size()), graph[v].type, graph[v].constant);
    if (!graph[v].is_constant()) trial.graph.inputs.push_back(id);
    trial.operands.push_back(id);
    operands.emplace_back(Val(&builder, id));
  }
  std::vector<TensorType> declared;
  for (ValueId v : node.outputs) declared.push_back(v == no_value ? TensorType{} : graph[v].type);
  try {
    for (Val v : lower_call(builder, node.op, std::move(operands), node.attrs, declared))
      trial.results.push_back(v.id());
  } catch (Refusal& refusal) { return std::move(refusal.why); }
  trial.graph.outputs = trial.results;
  return trial;
}

}  // namespace tosaic
