// SPDX-License-Identifier: Apache-2.0
// Calls that raise their operand to a power that is known. Private to quantise/.
#pragma once
#include <optional>

#include "ir/aten_operators.h"
#include "ir/tensor.h"

namespace tosaic {

// A constant of one element.
inline std::optional<double> only_number(const Graph& graph, ValueId v) {
  if (v == no_value || !graph[v].is_constant() || graph[v].type.shape.elements() != 1) return {};
  return element_as_double(graph[v].type.dtype, graph[v].constant.data(), 0);
}

inline std::optional<double> exponent_of(const Graph& graph, const Node& node) {
  if (node.op == aten::op::sqrt) return 0.5;
  if (node.op == aten::op::square) return 2;
  if (node.op == aten::op::pow_Tensor_Tensor) return only_number(graph, node.inputs[1]);
  if (node.op != aten::op::pow_Tensor_Scalar) return {};
  const Attr* exponent = node.attrs.find("exponent");
  if (const auto* real = std::get_if<double>(exponent)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(exponent)) return static_cast<double>(*whole);
  return {};
}

}  // namespace tosaic
