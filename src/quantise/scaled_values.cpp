// SPDX-License-Identifier: Apache-2.0
#include "quantise/scaled_values.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/aten_operators.h"
#include "quantise/compared_scalars.h"
#include "quantise/observe.h"

namespace tosaic {
namespace {

// By which the call multiplies its only operand; nullopt: it does something else.
std::optional<double> factor_of(const Node& node) {
  const auto number = node.inputs.size() == 1 ? scalar_of(node) : std::nullopt;
  if (!number || !(*number > 0)) return std::nullopt;
  if (node.op == aten::op::mul_Tensor || node.op == aten::op::mul_Scalar) return *number;
  if (node.op == aten::op::div_Tensor || node.op == aten::op::div_Scalar) return 1 / *number;
  return std::nullopt;
}

// By group, its members that are made of none of them; somebody else's are counted, too.
std::map<ValueId, int> beginnings_of(const Graph& graph, const QuantisationPlan& plan) {
  std::vector<const Node*> maker(graph.values.size(), nullptr);
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value) maker[v] = &node;
  std::map<ValueId, int> beginnings;
  for (ValueId v = 0; v < plan.group.size(); ++v) {
    if (!plan.quantised[v] || graph[v].is_constant()) continue;
    const auto is_member = [&](ValueId x) {
      return x != no_value && x < plan.group.size() && plan.quantised[x] && plan.group[x] == plan.group[v];
    };
    beginnings[plan.group[v]] += !maker[v] || std::ranges::none_of(maker[v]->inputs, is_member);
  }
  for (ValueId v : graph.outputs)
    if (v < plan.group.size() && plan.quantised[v]) ++beginnings[plan.group[v]];
  return beginnings;
}

}  // namespace

std::vector<ScaledGroup> scaled_groups(const Graph& graph, const QuantisationPlan& plan) {
  std::map<ValueId, int> beginnings = beginnings_of(graph, plan);
  std::vector<ScaledGroup> found;
  const auto is_quantised = [&](ValueId v) {
    return v < plan.group.size() && plan.quantised[v] && !graph[v].is_constant();
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto factor = factor_of(node);
    if (!factor || plan.floating(n) || !is_quantised(node.inputs[0]) || !is_quantised(node.outputs[0])) continue;
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (plan.wide[x] != plan.wide[y] || plan.group[x] == plan.group[y] || beginnings[plan.group[y]] != 1) continue;
    found.push_back({plan.group[y], x, *factor});
  }
  return found;
}

void keep_scaled_values(Graph& graph, const QuantisationPlan& plan) {
  std::map<ValueId, Scales> kept;  // by group: of a chain of products, each has the one before it
  for (const ScaledGroup& scaled : scaled_groups(graph, plan)) {
    if (!graph[scaled.of].type.quantised()) continue;
    const auto before = kept.find(plan.group[scaled.of]);
    Scales scales = before == kept.end() ? *graph[scaled.of].type.scales : before->second;
    scales.scale[0] = static_cast<double>(static_cast<float>(scales.scale[0] * scaled.by));  // as PT2E has scales
    if (scales.scale[0] >= smallest_scale) kept[scaled.group] = std::move(scales);
  }
  for (ValueId v = 0; v < plan.group.size(); ++v)
    if (const auto found = kept.find(plan.group[v]);
        found != kept.end() && plan.quantised[v] && graph[v].type.quantised())
      graph[v].type.scales = found->second;
}

}  // namespace tosaic
