// SPDX-License-Identifier: Apache-2.0
#include "quantise/compared_scalars.h"

#include <algorithm>
#include <cmath>

#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

constexpr std::int64_t most_scalars = 64;  // a constant of more is a tensor among tensors

bool holds_scalars(const Value& value) {
  return value.is_constant() && is_float(value.type.dtype) && !value.type.quantised() &&
         value.type.shape.elements() <= most_scalars;
}

// The only operand that is no number; no_value where there are several.
ValueId tensor_of(const Graph& graph, const Node& node) {
  ValueId found = no_value;
  for (ValueId v : node.inputs) {
    if (v == no_value || holds_scalars(graph[v])) continue;
    if (found != no_value) return no_value;
    found = v;
  }
  return found;
}

std::vector<double> numbers_of(const Value& constant) {
  std::vector<double> scalars(static_cast<std::size_t>(constant.type.shape.elements()));
  for (std::size_t i = 0; i < scalars.size(); ++i)
    scalars[i] = element_as_double(constant.type.dtype, constant.constant.data(), i);
  return scalars;
}

// The quantised value of a scalar; none if it is further than a step from all. Quantised values at the ends may stand
// for a step more, for ranges are moved so that 0 is a quantised value.
std::optional<std::int64_t> quantise_scalar(double scalar, const TensorType& type) {
  const double scale = type.scales->scale[0], zero = static_cast<double>(type.scales->zero_point[0]);
  const IntegerRange limits = quantised_range(type);
  const double code = std::clamp(std::nearbyint(scalar / scale) + zero, static_cast<double>(limits.lowest),
                                 static_cast<double>(limits.highest));
  if (std::fabs((code - zero) * scale - scalar) > scale) return std::nullopt;
  return static_cast<std::int64_t>(code);
}

}  // namespace

std::optional<double> scalar_of(const Node& node) {
  const Attr* other = node.attrs.find("other");
  if (!other) return std::nullopt;
  if (const auto* scalar = std::get_if<double>(other)) return *scalar;
  if (const auto* integer = std::get_if<std::int64_t>(other)) return static_cast<double>(*integer);
  return std::nullopt;
}

bool compares(const Graph& graph, const Node& node) {
  return find_aten(node.op).rule->adds && !node.outputs.empty() && node.outputs[0] != no_value &&
         graph[node.outputs[0]].type.dtype == DType::boolean;
}

ComparedScalars::ComparedScalars(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (!compares(graph, node)) continue;
    const ValueId x = tensor_of(graph, node);
    if (x == no_value) continue;
    Comparison made{node.outputs[0], {}};
    const auto add = [&](double scalar) {
      if (std::isfinite(scalar) && scalar != 0) made.met[static_cast<float>(scalar)] = false;
    };
    if (const auto scalar = scalar_of(node)) add(*scalar);
    for (ValueId v : node.inputs)
      if (v != no_value && v != x) std::ranges::for_each(numbers_of(graph[v]), add);
    if (made.met.empty()) continue;
    of_[x].push_back(comparisons_.size());
    comparisons_.push_back(std::move(made));
  }
}

void ComparedScalars::see(ValueId v, std::span<const float> x) {
  const auto found = of_.find(v);
  if (found == of_.end()) return;
  for (std::size_t i : found->second)
    for (auto& [scalar, met] : comparisons_[i].met) met = met || std::ranges::find(x, scalar) != x.end();
}

void ComparedScalars::round(Graph& graph) const {
  std::map<ValueId, const Comparison*> by_result;
  for (const Comparison& c : comparisons_) by_result[c.result] = &c;
  for (Node& node : graph.nodes) {
    const auto found = node.outputs.empty() ? by_result.end() : by_result.find(node.outputs[0]);
    const ValueId x = found == by_result.end() ? no_value : tensor_of(graph, node);
    if (x == no_value || !graph[x].type.quantised() || !graph[x].type.scales->per_tensor()) continue;
    const TensorType quantised_type = graph[x].type;
    const auto code = [&](double scalar) {
      const auto met = found->second->met.find(static_cast<float>(scalar));
      return scalar == 0 || (met != found->second->met.end() && met->second) ? quantise_scalar(scalar, quantised_type)
                                                                             : std::nullopt;
    };
    if (const auto scalar = scalar_of(node))
      if (const auto c = code(*scalar))
        node.attrs.set(
            "other", static_cast<double>(*c - quantised_type.scales->zero_point[0]) * quantised_type.scales->scale[0]);
    for (ValueId& v : node.inputs) {
      if (v == no_value || v == x) continue;
      std::vector<std::int64_t> all;
      for (double scalar : numbers_of(graph[v]))
        if (const auto c = code(scalar)) all.push_back(*c);
      if (static_cast<std::int64_t>(all.size()) == graph[v].type.shape.elements())
        v = graph.add_value(graph[v].name, quantised_type.with(graph[v].type.shape),
                            constant_bytes(quantised_type.dtype, all));
    }
  }
}

}  // namespace tosaic
