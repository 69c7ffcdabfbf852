// SPDX-License-Identifier: Apache-2.0
// A program of half floats is quantised as the f32 program with the same weights: between two tensors of codes there
// is no half to round to. Only the program's own inputs and outputs stay what the caller has, behind conversions.
#include "ir/tensor.h"
#include "quantise/quantise.h"

namespace tosaic {
namespace {

bool half(DType type) { return type == DType::f16 || type == DType::bf16; }

Node conversion(ValueId from, ValueId to, DType dtype) {
  Node node;
  node.op = "aten._to_copy.default";
  node.inputs = {from};
  node.outputs = {to};
  node.attrs.set("dtype", dtype);
  return node;
}

}  // namespace

void widen_halves(Graph& graph) {
  std::vector<char> is_input(graph.values.size(), 0);
  for (ValueId v : graph.inputs) is_input[v] = 1;
  std::vector<DType> declared;
  for (ValueId v : graph.outputs) declared.push_back(graph[v].type.dtype);
  std::vector<ValueId> replaced(graph.values.size());
  std::vector<Node> nodes;
  for (ValueId v = 0; v < replaced.size(); ++v) {
    replaced[v] = v;
    if (!half(graph[v].type.dtype)) continue;
    if (is_input[v]) {
      replaced[v] = graph.add_value(graph[v].name + ".f32", graph[v].type.with(DType::f32));
      nodes.push_back(conversion(v, replaced[v], DType::f32));
      continue;
    }
    if (graph[v].is_constant()) graph[v].constant = converted({graph[v].type, graph[v].constant.data()}, DType::f32);
    graph[v].type.dtype = DType::f32;
  }
  for (Node& node : graph.nodes) {
    for (ValueId& v : node.inputs)
      if (v != no_value) v = replaced[v];
    for (const auto& [name, attr] : Attrs(node.attrs))
      if (const auto* type = std::get_if<DType>(&attr); type && half(*type)) node.attrs.set(name, DType::f32);
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    if (!half(declared[i])) continue;
    const ValueId wide = replaced[graph.outputs[i]];
    graph.outputs[i] =
        graph.add_value(std::exchange(graph[wide].name, graph[wide].name + ".f32"), graph[wide].type.with(declared[i]));
    graph.nodes.push_back(conversion(wide, graph.outputs[i], declared[i]));
  }
}

}  // namespace tosaic
