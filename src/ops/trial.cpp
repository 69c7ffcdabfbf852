// SPDX-License-Identifier: Apache-2.0
#include "ops/trial.h"

#include <fmt/format.h>
#include <algorithm>

namespace tosaic {

Vals lower_as_floats(Builder& builder, const Node& node, std::vector<std::optional<Val>> operands,
                     const std::vector<TensorType>& declared) {
  return lower_call(builder, node.op, std::move(operands), node.attrs, declared);
}

TensorType real_type(const TensorType& type) {
  return type.quantised() ? TensorType{DType::f32, type.shape, {}} : type;
}

Node undeclared(const Node& node) {
  Node call = node;
  call.outputs.clear();
  return call;
}

Diagnostic unknown_size(const Node& node, const UnknownSize& why) {
  return located(error("aten.symbolic-shape", fmt::format("{}: {}", node.op, why.what()))
                     .hint("export the model with fixed input sizes"),
                 node.loc);
}

Result<Trial> try_node(const Graph& graph, const Node& node, const TrialOptions& options) {
  const bool floats = options.lowering == lower_as_floats;
  Trial trial;
  Builder builder(trial.graph, options.spec);
  builder.fold(options.fold);
  builder.set_loc(node.loc);
  std::vector<std::optional<Val>> operands;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == no_value) {
      trial.operands.push_back(no_value);
      operands.emplace_back();
      continue;
    }
    const bool is_quantised = floats && graph[v].type.quantised();
    TensorType type = is_quantised ? real_type(graph[v].type) : graph[v].type;
    Bytes elements = is_quantised ? Bytes() : graph[v].constant;
    if (options.operand) options.operand(i, type, elements);
    const bool computed = elements.null();
    const ValueId id = trial.graph.add_value("operand." + std::to_string(i), std::move(type), std::move(elements));
    if (computed) trial.graph.inputs.push_back(id);
    trial.operands.push_back(id);
    operands.emplace_back(Val(&builder, id));
  }
  std::vector<TensorType> declared;
  for (ValueId v : node.outputs)
    declared.push_back(v == no_value ? TensorType{} : floats ? real_type(graph[v].type) : graph[v].type);
  try {
    for (Val v : options.lowering(builder, node, std::move(operands), declared)) trial.results.push_back(v.id());
  } catch (Refusal& refusal) { return std::move(refusal.why); } catch (const UnknownSize& unknown) {
    return unknown_size(node, unknown);
  }
  trial.graph.outputs = trial.results;
  return trial;
}

std::vector<char> read_operands(const Trial& trial) {
  std::vector<char> read(trial.operands.size(), 0);
  for (std::size_t i = 0; i < read.size(); ++i) {
    const ValueId v = trial.operands[i];
    read[i] = v != no_value && (std::count(trial.results.begin(), trial.results.end(), v) > 0 ||
                                std::any_of(trial.graph.nodes.begin(), trial.graph.nodes.end(), [&](const Node& made) {
                                  return std::count(made.inputs.begin(), made.inputs.end(), v) > 0;
                                }));
  }
  return read;
}

std::vector<char> read_operands(const Graph& graph, const Node& node) {
  // Constants as well: a lowering that folds them would not be seen to read them.
  const auto unknown = [](std::size_t, TensorType& type, Bytes& elements) {
    if (is_float(type.dtype)) elements = {};
  };
  const auto trial = try_node(graph, node, {.operand = unknown});
  return trial.ok() ? read_operands(*trial) : std::vector<char>(node.inputs.size(), 1);
}

void leave_results(Trial& trial, const std::vector<char>& read) {
  if (std::all_of(read.begin(), read.end(), [](char is_read) { return is_read != 0; })) return;
  std::vector<ValueId*> kept;
  for (std::size_t i = 0; i < trial.results.size(); ++i) {
    if (i >= read.size() || read[i])
      kept.push_back(&trial.results[i]);
    else
      trial.results[i] = no_value;
  }
  const std::size_t outputs = kept.size();
  for (ValueId& v : trial.operands)
    if (v != no_value) kept.push_back(&v);
  trial.graph.outputs.clear();
  for (const ValueId* v : kept) trial.graph.outputs.push_back(*v);
  drop_dead(trial.graph);
  for (std::size_t i = 0; i < kept.size(); ++i) *kept[i] = trial.graph.outputs[i];
  trial.graph.outputs.resize(outputs);
}

}  // namespace tosaic
