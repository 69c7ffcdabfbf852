// SPDX-License-Identifier: Apache-2.0
// Calls on constants only (arange, masks, position tables) are evaluated now, by their own lowering.
#include <algorithm>

#include "ir/marks.h"
#include "normalise/known_scalars.h"
#include "normalise/normalise.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"

namespace tosaic {

namespace {

// Quantised values that a call makes the weights of products: smaller than these, and products can take them as they
// are.
class QuantisedWeights {
 public:
  QuantisedWeights(const Graph& graph, bool keep) : graph_(graph) {
    if (keep) users_ = consumers(graph);
  }
  bool kept(const Node& node) const {
    if (users_.empty() || node.inputs.empty() || node.inputs[0] == no_value || node.outputs.size() != 1) return false;
    const TensorType &quantised = graph_[node.inputs[0]].type, &reals = graph_[node.outputs[0]].type;
    return quantised.dtype == DType::i8 && is_float(reals.dtype) && quantised.shape == reals.shape &&
           reals.rank() == 2 && !users_[node.outputs[0]].empty() &&
           std::ranges::all_of(users_[node.outputs[0]],
                               [&](std::uint32_t n) { return multiplies(n, node.outputs[0]); });
  }

 private:
  const Graph& graph_;
  std::vector<std::vector<std::uint32_t>> users_;  // empty: nothing is kept

  bool multiplies(std::uint32_t n, ValueId weight) const {
    const Node& node = graph_.nodes[n];
    return find_aten(node.op).rule->accumulates && node.inputs.size() > 1 && node.inputs[1] == weight &&
           !graph_[node.inputs[0]].is_constant();
  }
};

}  // namespace

void fold_constants(Graph& graph, bool keep_quantised_weights) {
  KnownScalars numbers;
  const QuantisedWeights quantised(graph, keep_quantised_weights);
  for (Node& node : graph.nodes) {
    numbers.fill_in(graph, node);
    numbers.learn(graph, node);
    numbers.learn_sizes(graph, node);
    // Sizes decide: cond(x.shape[0] > 2, ...); or are returned: x.shape[0] / 2.
    if (node.outputs.size() == 1 && node.outputs[0] != no_value && graph[node.outputs[0]].type.rank() == 0)
      if (Bytes known = numbers.constant(graph[node.outputs[0]]); !known.null())
        graph[node.outputs[0]].constant = std::move(known);
    bool constant = !node.outputs.empty() && find_aten(node.op).op &&
                    std::all_of(node.inputs.begin(), node.inputs.end(),
                                [&](ValueId v) { return v == no_value || graph[v].is_constant(); });
    // Dequantised weights stay as they are: fold_quantisation turns them into scales.
    if (!constant || node.op.is_conversion() || quantised.kept(node)) continue;
    Node exact = node;  // what reads it is not asked: it costs nothing at run time
    set_mark(exact, mark::exact, true);
    auto trial = try_node(graph, exact, {.fold = true});
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
  fold_constants(graph,
                 keep_quantised_weights);  // with the sizes that follow from these; each round leaves fewer symbols
}

}  // namespace tosaic
