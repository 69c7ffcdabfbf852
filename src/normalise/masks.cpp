// SPDX-License-Identifier: Apache-2.0
#include "normalise/masks.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ops/op.h"
#include "ops/operator_name.h"

namespace tosaic {

std::optional<Symbol> only_symbol(const Dim& dim) {
  for (const Symbol& symbol : dim.symbols())
    if (dim == Dim(symbol)) return symbol;
  return std::nullopt;
}

std::optional<Choice> choice(const Graph& graph, std::span<const ValueId> indices) {
  Choice found;
  while (found.dim < static_cast<int>(indices.size()) && indices[static_cast<std::size_t>(found.dim)] == no_value)
    ++found.dim;
  if (found.dim + 1 != static_cast<int>(indices.size())) return std::nullopt;
  found.mask = indices.back();
  const Value& mask = graph[found.mask];
  if (mask.type.dtype != DType::boolean || mask.type.rank() == 0 || !mask.type.shape.is_static() || mask.is_constant())
    return std::nullopt;
  return found;
}
std::optional<Choice> chosen_rows(const Graph& graph, const Node& node) {
  if (node.op == aten::op::index_Tensor && node.inputs.size() > 1)
    return choice(graph, std::span(node.inputs).subspan(1));
  if (node.op == aten::op::masked_select && node.inputs.size() == 2 &&
      graph[node.inputs[0]].type.shape == graph[node.inputs[1]].type.shape)
    return choice(graph, std::span(node.inputs).last(1));
  return std::nullopt;
}

bool gives_indices(const Graph& graph, const Node& node) {
  if (!gives_indices(node)) return false;
  const Value& mask = graph[node.inputs[0]];
  return !mask.is_constant() && mask.type.rank() > 0 && mask.type.shape.is_static() &&
         std::ranges::none_of(node.outputs, [](ValueId v) { return v == no_value; });
}

// Random numbers, which are not computed alike, are no operators of ours.
std::vector<ValueId> first_equals(const Graph& graph) {
  std::vector<ValueId> first(graph.values.size());
  std::iota(first.begin(), first.end(), 0);
  std::map<std::pair<std::string_view, std::vector<ValueId>>, std::vector<const Node*>> met;
  for (const Node& node : graph.nodes) {
    if (node.outputs.size() != 1 || node.outputs[0] == no_value || !find_aten(node.op).op || !node.regions.empty())
      continue;
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& v : inputs)
      if (v != no_value) v = first[v];
    auto& alike = met[{node.op.name(), std::move(inputs)}];
    const auto equal = std::find_if(alike.begin(), alike.end(), [&](const Node* n) {
      return n->attrs == node.attrs && graph[n->outputs[0]].type == graph[node.outputs[0]].type;
    });
    if (equal == alike.end())
      alike.push_back(&node);
    else
      first[node.outputs[0]] = (*equal)->outputs[0];
  }
  return first;
}

Masks masks_of(const Graph& graph, const std::vector<ValueId>& equals) {
  Masks masks;
  std::set<std::string> unclear;
  const auto note = [&](ValueId mask, const Dim& size) {
    const auto symbol = only_symbol(size);
    const std::int64_t count = graph[mask].type.shape.elements();
    if (!symbol || count < 2) return;
    const auto [known, fresh] = masks.emplace(symbol->name, Mask{equals[mask], count});
    if (!fresh && known->second.value != equals[mask]) unclear.insert(symbol->name);
  };
  for (const Node& node : graph.nodes) {
    if (gives_indices(graph, node)) note(node.inputs[0], graph[node.outputs[0]].type.shape[0]);
    const auto chosen = chosen_rows(graph, node);
    if (!chosen || node.outputs.size() != 1 || node.outputs[0] == no_value) continue;
    const Shape& rows = graph[node.outputs[0]].type.shape;
    if (graph[node.inputs[0]].type.shape.is_static() && chosen->dim < rows.rank())
      note(chosen->mask, rows[chosen->dim]);
  }
  for (const std::string& symbol : unclear) masks.erase(symbol);
  return masks;
}

}  // namespace tosaic
