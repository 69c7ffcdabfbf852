// SPDX-License-Identifier: Apache-2.0
#include "ops/computed.h"

#include <algorithm>

#include "interp/interp.h"
#include "ir/tensor.h"

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
    if (!is_float(type.dtype) || i >= values.size())
      return error("run.input-type", "the operands are not all floats with values");
    inputs.push_back({type, constant_bytes(type.dtype, values[i])});
  }
  TOSAIC_TRY(const auto results, interp::run(trial.graph, std::move(inputs), {.precise = true}));
  if (results.empty()) return error("lower.missing-result", "the call has no results");
  const Tensor& y = results.front();
  std::vector<double> out(static_cast<std::size_t>(y.type.shape.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(y.type.dtype, y.data.data(), i);
  return out;
}

bool exceeds(const Graph& graph, const Node& node, double lowest, double highest) {
  const auto zeros = [](std::size_t i, TensorType& type, Bytes& elements) {
    if (i > 0 && !elements.null()) return;
    if (i == 0) type = {DType::f32, type.shape, {}};
    elements = constant_bytes(type.dtype, std::vector<double>(static_cast<std::size_t>(type.shape.elements()), 0.0));
  };
  const auto trial = try_node(graph, undeclared(node), {.fold = true, .operand = zeros});
  if (!trial.ok() || trial->results.empty()) return false;
  const Value& y = trial->graph[trial->results[0]];
  if (!y.is_constant() || y.type.dtype != DType::f32) return false;
  const auto made = y.constant.as<float>();
  return std::any_of(made.begin(), made.end(), [&](float x) { return x < lowest || x > highest; });
}

tosa::Bounds reals_of(const TensorType& type) {
  const auto codes = quantised_range(type);
  const double scale = type.scales->scale[0];
  const auto zero = static_cast<double>(type.scales->zero_point[0]);
  return {(static_cast<double>(codes.lowest) - zero) * scale, (static_cast<double>(codes.highest) - zero) * scale};
}

double reach_of(const TensorType& type) {
  const tosa::Bounds reals = reals_of(type);
  return std::max(reals.highest, -reals.lowest);
}

}  // namespace tosaic
