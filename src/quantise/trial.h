// SPDX-License-Identifier: Apache-2.0
// What a call computes, asked of its own float lowering: functions at points, sums at unit vectors.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "ops/op.h"

namespace tosaic {

// A call lowered by itself as floats, its computed operands under other shapes.
struct CallTrial {
  Graph graph;
  std::vector<ValueId> computed;  // per operand: an input of `graph`, or no_value

  // `shape`: of the computed operands instead of their own.
  static std::optional<CallTrial> of(const Graph& from, const Node& node, const std::optional<Shape>& shape) {
    CallTrial t;
    Builder builder(t.graph);
    std::vector<std::optional<Val>> operands;
    for (ValueId v : node.inputs) {
      t.computed.push_back(no_value);
      if (v == no_value) {
        operands.push_back(std::nullopt);
        continue;
      }
      TensorType type = from[v].type;
      if (type.quantised() && !from[v].is_constant()) type = {DType::f32, type.shape, {}};
      const bool constant = from[v].is_constant() && (!shape || type.shape.elements() == 1);
      if (!constant && shape) type.shape = *shape;
      ValueId id =
          t.graph.add_value("operand." + std::to_string(operands.size()), type, constant ? from[v].constant : Bytes{});
      if (!constant) {
        t.graph.inputs.push_back(id);
        t.computed.back() = id;
      }
      operands.emplace_back(Val(&builder, id));
    }
    try {
      builder.fold(false);
      Vals results = lower_call(builder, node.op, std::move(operands), node.attrs, {});
      for (Val r : results) t.graph.outputs.push_back(r.id());
    } catch (const Refusal&) { return std::nullopt; }
    return t;
  }

  // The first result, for the given values of the computed operands.
  std::optional<std::vector<double>> run(const std::vector<std::vector<double>>& values) const {
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const TensorType& type = graph[graph.inputs[i]].type;
      if (!is_float(type.dtype)) return std::nullopt;
      inputs.push_back({type, constant_bytes(type.dtype, values.at(i))});
    }
    auto results = interp::run(graph, inputs, {.precise = true});
    if (!results.ok() || results->empty()) return std::nullopt;
    const Tensor& y = results->front();
    std::vector<double> out(static_cast<std::size_t>(y.type.shape.elements()));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(y.type.dtype, y.data.data(), i);
    return out;
  }
};

}  // namespace tosaic
