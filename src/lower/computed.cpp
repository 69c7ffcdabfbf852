// SPDX-License-Identifier: Apache-2.0
#include "lower/computed.h"

#include "interp/interp.h"

namespace tosaic {

Result<Trial> try_in_shape(const Graph& graph, const Node& node, const Shape& shape) {
  const auto operand = [&](std::size_t, TensorType& type, Bytes& elements) {
    if (!elements.null() && type.shape.elements() == 1) return;
    elements = {};
    type.shape = shape;
  };
  return try_node(graph, undeclared(node), {.operand = operand});
}

Result<std::vector<double>> computed_at(const Trial& trial, const std::vector<std::vector<double>>& values) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < trial.graph.inputs.size(); ++i) {
    const TensorType& type = trial.graph[trial.graph.inputs[i]].type;
    if (!is_float(type.dtype) || i >= values.size()) return error("run.input-type", "a call of floats is asked about");
    inputs.push_back({type, constant_bytes(type.dtype, values[i])});
  }
  TOSAIC_TRY(const auto results, interp::run(trial.graph, std::move(inputs), {.precise = true}));
  if (results.empty()) return error("lower.missing-result", "a call without results is asked about");
  const Tensor& y = results.front();
  std::vector<double> out(static_cast<std::size_t>(y.type.shape.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(y.type.dtype, y.data.data(), i);
  return out;
}

}  // namespace tosaic
