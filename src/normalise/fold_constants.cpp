// SPDX-License-Identifier: Apache-2.0
// Calls on constants only (arange, masks, position tables) are evaluated now, by their own lowering.
#include <algorithm>

#include "normalise/known_numbers.h"
#include "normalise/normalise.h"
#include "ops/trial.h"

namespace tosaic {

void fold_constants(Graph& graph) {
  KnownNumbers numbers;
  for (Node& node : graph.nodes) {
    numbers.fill_in(graph, node);
    numbers.learn(graph, node);
    numbers.learn_sizes(graph, node);
    bool constant = !node.outputs.empty() && find_aten(node.op).op &&
                    std::all_of(node.inputs.begin(), node.inputs.end(),
                                [&](ValueId v) { return v == no_value || graph[v].is_constant(); });
    // Dequantised weights stay as they are: fold_quantisation turns them into scales.
    if (!constant || node.op.starts_with("quantized_decomposed.")) continue;
    auto trial = try_node(graph, node, {.fold = true});
    if (!trial.ok()) continue;
    bool all = std::all_of(trial->results.begin(), trial->results.end(),
                           [&](ValueId v) { return trial->graph[v].is_constant(); });
    if (!all || trial->results.size() != node.outputs.size()) continue;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)  // what contradicts the program is said where it is lowered
      all &= node.outputs[i] == no_value ||
             trial->graph[trial->results[i]].type.shape == graph[node.outputs[i]].type.shape;
    if (!all) continue;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == no_value) continue;
      Value& value = graph[node.outputs[i]];
      value.type = trial->graph[trial->results[i]].type;
      value.constant = trial->graph[trial->results[i]].constant;
    }
  }
  drop_dead(graph);
  if (numbers.sizes().empty()) return;
  Graph sized = graph;
  if (!replace_symbols(sized, numbers.sizes()).ok()) return;
  graph = std::move(sized);
  fold_constants(graph);  // with the sizes that follow from these; each round leaves fewer symbols
}

}  // namespace tosaic
