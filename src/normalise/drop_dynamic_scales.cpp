// SPDX-License-Identifier: Apache-2.0
// Activations that a program quantises as it runs (choose_qparams, then quantise and dequantise with what it chose)
// stay the floats that they were: few targets compute with scales that change from call to call, and none with zero
// points of 64 bits, as PyTorch's own choose_qparams gives them. The weights next to
// them become float constants again unless scales of the program's own are left; then an integer target chooses the
// activations' scales from samples, as for any float program.
#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "normalise/normalise.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

bool is_call(const Node& node, std::string_view name) { return node.op.base().starts_with(name); }

bool chooses_in_64_bits(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.outputs,
                             [&](ValueId v) { return v != no_value && graph[v].type.dtype == DType::i64; });
}

// Are the program's own scales, if any, those of constants?
bool only_weights_have_scales(const Graph& graph) {
  return std::none_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return is_call(n, "quantize_"); });
}

void restore_weights(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (!is_call(node, "dequantize_") || node.inputs.empty() || !graph[node.inputs[0]].is_constant()) continue;
    auto trial = try_node(graph, node, {.fold = true});
    if (!trial.ok() || !trial->graph[trial->results[0]].is_constant()) continue;
    graph[node.outputs[0]].type = trial->graph[trial->results[0]].type;
    graph[node.outputs[0]].constant = trial->graph[trial->results[0]].constant;
  }
}

}  // namespace

void drop_dynamic_scales(Graph& graph, const Sink& sink, bool keep_quantised_weights) {
  std::vector<char> chosen(graph.values.size(), 0);          // scales and zero points known only at run time
  std::vector<ValueId> real(graph.values.size(), no_value);  // quantised values made with them -> what they stand for
  LocRef first;
  std::set<ValueId> dropped;  // tensors that are taken as the floats that they were
  Forward same_as;
  for (Node& node : graph.nodes) {
    same_as.operands(node);
    const bool dynamic =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && chosen[v]; });
    if (is_call(node, "choose_qparams")) {
      if (keep_quantised_weights && !chooses_in_64_bits(graph, node)) continue;
      for (ValueId v : node.outputs)
        if (v != no_value) chosen[v] = 1;
    } else if (dynamic && is_call(node, "quantize_")) {
      real[node.outputs[0]] = node.inputs[0];
    } else if (dynamic && is_call(node, "dequantize_") && real[node.inputs[0]] != no_value) {
      same_as.set(node.outputs[0], real[node.inputs[0]]);
      if (dropped.empty()) first = node.loc;
      dropped.insert(real[node.inputs[0]]);
    } else if (dynamic) {  // a cast of a zero point
      for (ValueId v : node.outputs)
        if (v != no_value) chosen[v] = 1;
    }
  }
  if (dropped.empty()) return;
  same_as.outputs(graph);
  drop_dead(graph);
  if (only_weights_have_scales(graph)) restore_weights(graph);
  fold_constants(graph);  // what is computed of the weights alone
  auto note =
      warning("model.dynamic-scales",
              fmt::format("the program quantises {} tensor{} with scales that it chooses as it runs; their floats "
                          "are taken as they are",
                          dropped.size(), dropped.size() == 1 ? "" : "s"));
  note.severity = Severity::note;
  note.help = "integer targets need fixed scales, which they choose from --calibrate FILE.npz";
  if (sink) sink(located(std::move(note), first));
}

}  // namespace tosaic
