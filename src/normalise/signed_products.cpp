// SPDX-License-Identifier: Apache-2.0
// torchao's int8 layers hand _int_mm the quantised values of their activations as (q + 128) in uint8, and take 128
// times the weights' column sums off again: what x86's instructions want. TOSA has no uint8, and takes the quantised
// values as they are.
//   _int_mm(u8(q + 128), W) == _int_mm(q, W) + 128 * sum(W, 0)
#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "normalise/normalise.h"

namespace tosaic {
namespace {

constexpr std::int64_t shift = 128;

class SignedProducts {
 public:
  explicit SignedProducts(Graph& graph) : graph_(graph), made_by_(producers(graph)) {}

  // The int8 quantised values behind (q + 128) in uint8; no_value: v is something else.
  ValueId signed_source(ValueId v) const {
    const Node* narrowed = conversion(v, DType::i32, DType::u8);
    const Node* shifted = narrowed ? maker(narrowed->inputs[0]) : nullptr;
    if (!shifted || shifted->op != aten::op::add_Tensor || shifted->inputs.size() > 2 || !adds_shift(*shifted))
      return no_value;
    const Node* widened = conversion(shifted->inputs[0], DType::i8, DType::i32);
    return widened ? widened->inputs[0] : no_value;
  }

 private:
  const Node* maker(ValueId v) const {
    const std::int32_t p = v < made_by_.size() ? made_by_[v] : -1;
    return p < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(p)];
  }
  const Node* conversion(ValueId v, DType from, DType to) const {
    const Node* node = maker(v);
    const bool converts = node && (node->op == aten::op::to_dtype || node->op == aten::op::_to_copy);
    return converts && graph_[node->inputs[0]].type.dtype == from && graph_[v].type.dtype == to ? node : nullptr;
  }
  bool adds_shift(const Node& node) const {
    if (node.attrs.find("alpha") && node.attrs.get_or<std::int64_t>("alpha", 0) != 1) return false;
    if (node.inputs.size() == 2 && node.inputs[1] != no_value) {
      const Value& other = graph_[node.inputs[1]];
      return other.is_constant() && other.type.shape.elements() == 1 && is_integer(other.type.dtype) &&
             element_as_double(other.type.dtype, other.constant.data(), 0) == shift;
    }
    return node.attrs.get_or<std::int64_t>("other", 0) == shift;
  }

  const Graph& graph_;
  const std::vector<std::int32_t> made_by_;
};

// 128 * sum(W, 0): 1 x columns, int32.
ValueId shifted_sums(Graph& graph, ValueId weight) {
  const Value& w = graph[weight];
  const std::int64_t rows = w.type.shape.size(0), columns = w.type.shape.size(1);
  std::vector<double> sums(static_cast<std::size_t>(columns), 0);
  const auto quantised = w.constant.as<std::int8_t>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * columns); ++i)
    sums[i % sums.size()] += static_cast<double>(shift * quantised[i]);
  const std::string name = w.name + ".sums";
  return graph.add_value(name, {DType::i32, Shape{1, columns}, {}}, constant_bytes(DType::i32, sums));
}

}  // namespace

void signed_products(Graph& graph) {
  const bool any = std::ranges::any_of(graph.nodes, [](const Node& n) { return n.op == aten::op::_int_mm; });
  if (!any) return;
  const SignedProducts products(graph);
  std::vector<Node> nodes;
  for (Node node : graph.nodes) {  // copies: `products` looks at the others
    const bool fits = node.op == aten::op::_int_mm && graph[node.inputs[1]].is_constant() &&
                      graph[node.inputs[1]].type.dtype == DType::i8;
    const ValueId quantised = fits ? products.signed_source(node.inputs[0]) : no_value;
    if (quantised == no_value) {
      nodes.push_back(std::move(node));
      continue;
    }
    const ValueId result = node.outputs[0], sums = shifted_sums(graph, node.inputs[1]);
    Node add{.op = aten::op::add_Tensor, .inputs = {no_value, sums}, .attrs = {}, .outputs = {result}, .loc = node.loc};
    node.inputs[0] = quantised;
    node.outputs[0] = add.inputs[0] = graph.add_value(graph[result].name + ".signed", graph[result].type);
    nodes.push_back(std::move(node));
    nodes.push_back(std::move(add));
  }
  graph.nodes = std::move(nodes);
  drop_dead(graph);
}

}  // namespace tosaic
