// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {

namespace {

// Quantised values of weights that become floats: what is computed of them is computed when the program runs, or begins
// to.
bool is_from_quantised(const Graph& graph, const Node& node) {
  constexpr std::size_t least = 1 << 14;
  return node.op == tosa::op::cast && graph[node.inputs[0]].type.dtype == DType::i8 &&
         is_float(graph[node.outputs[0]].type.dtype) && graph[node.inputs[0]].constant.size() >= least;
}

}  // namespace

bool fold_constant_nodes(Graph& graph, bool keep_quantised_weights) {
  bool changed = false;
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  for (Node& node : graph.nodes) {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->eval || node.inputs.empty() || node.outputs.size() != 1 || !node.regions.empty() ||
        is_output[node.outputs[0]] || node.op == tosa::op::custom || tosa::is_variable(node.op))
      continue;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return graph[v].is_constant(); }))
      continue;
    if (keep_quantised_weights && is_from_quantised(graph, node)) continue;
    Value& result = graph[node.outputs[0]];
    std::optional<Bytes> content = tosa::constant_result(graph, node, *op, result.type);
    if (!content) continue;
    result.constant = *std::move(content);
    changed = true;
  }
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
