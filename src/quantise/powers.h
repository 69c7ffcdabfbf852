// SPDX-License-Identifier: Apache-2.0
// Calls that raise their operand to a power that is known. Private to quantise/.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "quantise/compared_scalars.h"

namespace tosaic {

// A constant of one element.
inline std::optional<double> only_number(const Graph& graph, ValueId v) {
  if (v == no_value || !graph[v].is_constant() || graph[v].type.shape.elements() != 1) return {};
  return element_as_double(graph[v].type.dtype, graph[v].constant.data(), 0);
}

inline std::optional<double> number_of(const Node& node, const char* name) {
  const Attr* attr = node.attrs.find(name);
  if (const auto* real = std::get_if<double>(attr)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(attr)) return static_cast<double>(*whole);
  return {};
}

// The second operand of a sum or a product, a number or a constant of one element.
inline std::optional<double> scalar_among(const Graph& graph, const Node& node) {
  if (const auto scalar = scalar_of(node)) return scalar;
  return node.inputs.size() < 2 ? std::nullopt : only_number(graph, node.inputs[1]);
}

// What a clamp's result is no less than, where that is all that it bounds.
inline std::optional<double> least_of(const Node& node) {
  if (node.op != aten::op::clamp_min && (node.op != aten::op::clamp || number_of(node, "max"))) return {};
  return number_of(node, "min");
}

// Of two tensors, with no factor.
inline bool is_plain_sum(const Node& node) {
  return node.op == aten::op::add_Tensor && node.inputs.size() == 2 && number_of(node, "alpha").value_or(1) == 1;
}

// Most programs have none, and are not looked at further.
inline bool may_have_roots(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.op == aten::op::sqrt || node.op == aten::op::pow_Tensor_Scalar ||
           node.op == aten::op::pow_Tensor_Tensor || node.op == aten::op::linalg_vector_norm;
  });
}

// The calls of a graph as they were before a rewrite, by their results.
class Calls {
 public:
  explicit Calls(const Graph& graph) : nodes_(graph.nodes), made_by_(producers(graph)) {}
  const Node* maker(ValueId v) const {
    return v == no_value || made_by_[v] < 0 ? nullptr : &nodes_[static_cast<std::size_t>(made_by_[v])];
  }
  // One value, or the same view of one, perhaps: x[0] and x[0].
  bool same(ValueId a, ValueId b) const {
    while (a != b) {
      const Node *one = maker(a), *other = maker(b);
      if (!one || !other || one->op != other->op || one->attrs != other->attrs) return false;
      for (const Node* call : {one, other})
        if (call->inputs.size() != 1 || call->outputs.size() != 1) return false;
      a = one->inputs[0];
      b = other->inputs[0];
    }
    return true;
  }

 private:
  const std::vector<Node> nodes_;
  const std::vector<std::int32_t> made_by_;
};

inline std::optional<double> exponent_of(const Graph& graph, const Calls& calls, const Node& node) {
  if (node.op == aten::op::mul_Tensor && node.inputs.size() == 2 && calls.same(node.inputs[0], node.inputs[1]))
    return 2;
  if (node.op == aten::op::sqrt) return 0.5;
  if (node.op == aten::op::square) return 2;
  if (node.op == aten::op::pow_Tensor_Tensor) return only_number(graph, node.inputs[1]);
  if (node.op != aten::op::pow_Tensor_Scalar) return {};
  return number_of(node, "exponent");
}

}  // namespace tosaic
