// SPDX-License-Identifier: Apache-2.0
// A call whose lowering hands back its operand does nothing (dropout in eval, detach, contiguous, to() of the same
// dtype, reshape to the same shape); one that looks at its operand's shape only is a constant (ones_like), and so is a
// result without elements; a call without results only asserts. All go, and so do operands without elements that add
// nothing (torch.cat of an empty state).
#include <algorithm>

#include "ir/rewriter.h"
#include "normalise/normalise.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

bool empty(const Graph& graph, ValueId v) { return graph[v].type.shape.is_empty(); }

// Whatever computes them: there is nothing to compute. What contradicts the program stays, and is said where it is
// lowered.
void take_empty_results(Graph& graph, const Node& node, Rewriter& out) {
  if (std::none_of(node.outputs.begin(), node.outputs.end(),
                   [&](ValueId v) { return v != no_value && empty(graph, v); }))
    return;
  if (const auto trial = try_node(graph, undeclared(node)); trial.ok())
    for (std::size_t i = 0; i < node.outputs.size() && i < trial->results.size(); ++i)
      if (node.outputs[i] != no_value &&
          trial->graph[trial->results[i]].type.shape != graph[node.outputs[i]].type.shape)
        return;
  for (ValueId v : node.outputs)
    if (v != no_value && empty(graph, v))
      out.replace(v, graph.add_value(graph[v].name, graph[v].type, Bytes::of(std::vector<std::byte>())));
}

// torch.cat takes tensors without elements, which TOSA lacks: the same result comes of the others.
void drop_empty_operands(const Graph& graph, Node& node, const FoundOp& found) {
  if (!found.rule->joins_operands || node.outputs.size() != 1 || node.outputs[0] == no_value ||
      std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && empty(graph, v); }))
    return;
  Node without = node;
  std::erase_if(without.inputs, [&](ValueId v) { return v != no_value && empty(graph, v); });
  const auto trial = try_node(graph, without);
  if (!trial.ok() || trial->results.size() != 1) return;
  const TensorType& made = trial->graph[trial->results[0]].type;
  if (made.shape == graph[node.outputs[0]].type.shape && made.dtype == graph[node.outputs[0]].type.dtype)
    node = std::move(without);
}

}  // namespace

void drop_identities(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (node.outputs.empty()) return;
    take_empty_results(graph, node, out);
    if (std::all_of(node.outputs.begin(), node.outputs.end(),
                    [&](ValueId v) { return v == no_value || out.replaced(v); }))
      return;
    FoundOp found = find_aten(node.op);
    drop_empty_operands(graph, node, found);
    if (node.outputs.size() == 1 && node.outputs[0] != no_value && found.rule->may_be_identity()) {
      auto trial = try_node(graph, node);
      // What contradicts the program stays, and is said where it is lowered.
      const bool agrees = trial.ok() && !trial->results.empty() &&
                          trial->graph[trial->results[0]].type.shape == graph[node.outputs[0]].type.shape;
      if (agrees && !trial->operands.empty() && trial->results[0] == trial->operands[0])
        return out.replace(node.outputs[0], node.inputs[0]);
      if (agrees && trial->graph[trial->results[0]].is_constant()) {
        graph[node.outputs[0]].constant = trial->graph[trial->results[0]].constant;
        graph[node.outputs[0]].type = trial->graph[trial->results[0]].type;
        return;
      }
    }
    out.keep(std::move(node));
  });
  drop_dead(graph);
}

}  // namespace tosaic
