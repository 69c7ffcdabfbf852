// SPDX-License-Identifier: Apache-2.0
#include "quantise/counted_factors.h"

#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/computed.h"
#include "ops/lowering/calls.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

constexpr double much_smaller = 4;  // a group keeps its own range where less is gained

// Grows beyond all bounds near 0?
bool has_pole(const Graph& graph, const Node& node) {
  if (!find_aten(node.op).rule->tabulates || node.outputs.size() != 1) return false;
  auto trial = try_in_shape(graph, node, Shape{3});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return false;
  const auto y = computed_at(*trial, {{1e-30, 1e-10, 1}});
  return y.ok() && y->size() == 3 && std::isfinite((*y)[2]) && std::fabs((*y)[1]) > 1e4 * std::fabs((*y)[2]) &&
         !(std::fabs((*y)[0]) < 1e3 * std::fabs((*y)[1]));
}

bool multiplies(const Graph& graph, const Node& node) {
  if (node.op != aten::op::mul_Tensor || node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return v != no_value && !graph[v].is_constant() && graph[v].type.dtype == DType::f32;
  });
}

Val greatest(Val x) {
  calls::Axes all(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  return all.empty() ? x : calls::amax(x, all, true);
}

}  // namespace

CountedFactors::CountedFactors(const Graph& graph, const QuantisationPlan& plan) {
  std::set<ValueId> factors, others;
  for (const Node& node : graph.nodes)
    if (has_pole(graph, node) && plan.quantised[node.outputs[0]]) factors.insert(plan.group[node.outputs[0]]);
  if (factors.empty()) return;
  const auto group = [&](ValueId v) { return v == no_value || !plan.quantised[v] ? no_value : plan.group[v]; };
  for (ValueId v : graph.outputs) others.insert(group(v));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId g = group(node.inputs[i]);
      if (g == no_value || !factors.contains(g)) continue;
      const bool moves = std::all_of(node.outputs.begin(), node.outputs.end(),
                                     [&](ValueId y) { return y == no_value || group(y) == g; });
      if (multiplies(graph, node) && group(node.inputs[1 - i]) != g && !moves)
        products_.push_back({n, i});
      else if (!moves)
        others.insert(g);
    }
  }
  std::erase_if(products_,
                [&](const Product& p) { return others.contains(group(graph.nodes[p.node].inputs[p.factor])); });
}

std::optional<Graph> CountedFactors::with_counted(const Graph& graph, const QuantisationPlan& plan) {
  if (products_.empty()) return std::nullopt;
  Graph more = graph;
  Rewriter out(more);
  Composer b(more);
  auto next = products_.begin();
  for (std::size_t n = 0; n < out.nodes().size(); ++n) {
    const Node node = out.nodes()[n];
    out.keep(std::move(out.nodes()[n]));
    for (; next != products_.end() && next->node == n; ++next) {
      b.set_loc(node.loc);
      const ValueId factor = node.inputs[next->factor], other = node.inputs[1 - next->factor];
      const Val size = calls::abs(b.value(other));
      // Half a step of the quantised values that hold the sample's largest element.
      const double half_step = plan.wide[other] ? 1.0 / 65536 : 1.0 / 512;
      const Val least = calls::mul(greatest(size), half_step);
      const Val meets = b.aten(aten::op::gt_Tensor, {size, least});
      const Val kept = calls::where(meets, b.value(factor), b.scalar(0, DType::f32));
      // A range is all that is asked of it.
      for (const Val end : {greatest(kept), calls::mul(greatest(calls::mul(kept, -1.0)), -1.0)}) {
        group_of_[end.id()] = plan.group[factor];
        more.outputs.push_back(end.id());  // somebody reads it
      }
    }
  }
  return more;
}

std::map<ValueId, Range> CountedFactors::ranges(const std::map<ValueId, Range>& seen) const {
  std::map<ValueId, Range> found;
  for (const auto& [group, range] : ranges_) {
    const auto natural = seen.find(group);
    const double kept = range.highest - range.lowest;
    if (natural != seen.end() && kept > 0 && natural->second.highest - natural->second.lowest > much_smaller * kept)
      found[group] = range;
  }
  return found;
}

}  // namespace tosaic
