// SPDX-License-Identifier: Apache-2.0
// Decomposed programs hold linear layers as addmm(bias, x, W^T) and mm(x, W^T) with the transposed weight folded:
// as aten.linear they take part in batch-norm folding and in per-channel quantisation. Both take a bias by output, so
// one element for all of them (x W^T + 1e-8) is repeated.
#include <cstring>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "normalise/normalise.h"

namespace tosaic {
namespace {

bool is_one(const Node& node, std::string_view name) {
  const Attr* a = node.attrs.find(name);
  if (!a) return true;
  if (const auto* i = std::get_if<std::int64_t>(a)) return *i == 1;
  const auto* d = std::get_if<double>(a);
  return d && *d == 1.0;
}

Bytes transposed(const Value& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.type.shape.size(0)),
             columns = static_cast<std::size_t>(matrix.type.shape.size(1));
  const std::size_t size = storage_size(matrix.type.dtype);
  const auto* from = static_cast<const std::byte*>(matrix.constant.data());
  std::byte* to = nullptr;
  Bytes bytes = Bytes::fresh(rows * columns * size, to);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      std::memcpy(to + (c * rows + r) * size, from + (r * columns + c) * size, size);
  return bytes;
}

void repeat_single_bias(Graph& graph, Node& linear) {
  ValueId& bias = linear.inputs[2];
  const TensorType type = graph[bias].type;
  const Shape& weight = graph[linear.inputs[1]].type.shape;
  if (!graph[bias].is_constant() || !is_float(type.dtype) || type.quantised() || type.shape.elements() != 1 ||
      weight.rank() != 2 || weight.size(0) == 1)
    return;
  const std::size_t size = storage_size(type.dtype), bytes = static_cast<std::size_t>(weight.size(0)) * size;
  std::byte* to = nullptr;
  Bytes repeated = Bytes::fresh(bytes, to);
  for (std::size_t i = 0; i < bytes; i += size) std::memcpy(to + i, graph[bias].constant.data(), size);
  bias = graph.add_value(graph[bias].name + ".repeated", {type.dtype, Shape{weight.size(0)}, {}}, std::move(repeated));
}

}  // namespace

void recognise_linear(Graph& graph) {
  for (Node& node : graph.nodes) {
    const bool biased = node.op == aten::op::addmm;
    if (!biased && node.op != aten::op::mm) continue;
    const ValueId bias = biased ? node.inputs[0] : no_value, x = node.inputs[biased ? 1 : 0],
                  matrix = node.inputs[biased ? 2 : 1];
    const TensorType type = graph[matrix].type;
    if (!graph[matrix].is_constant() || !is_float(type.dtype) || type.quantised() || graph[x].is_constant() ||
        !is_one(node, "alpha") || !is_one(node, "beta"))
      continue;
    if (biased && (!graph[bias].is_constant() || graph[bias].type.rank() != 1)) continue;
    const Shape& shape = type.shape;
    ValueId weight = graph.add_value(graph[matrix].name + ".t", {type.dtype, Shape{shape.size(1), shape.size(0)}, {}},
                                     transposed(graph[matrix]));
    node.op = aten::op::linear;
    node.inputs = {x, weight, bias};
    node.attrs = {};
  }
  for (Node& node : graph.nodes)
    if (node.op == aten::op::linear && node.inputs.size() > 2 && node.inputs[2] != no_value)
      repeat_single_bias(graph, node);
  drop_dead(graph);
}

}  // namespace tosaic
