// SPDX-License-Identifier: Apache-2.0
#include "quantise/calibrated_parts.h"

#include "quantise/certain_ranges.h"
#include "quantise/function_forms.h"
#include "quantise/successors.h"

namespace tosaic {
namespace {

UnlikeRanges carried(const UnlikeRanges& before, const Graph& graph, const Successors& same) {
  UnlikeRanges now(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    if (const auto was = same.node(n)) {
      now.apart[n] = before.apart[*was];
      now.floats[n] = before.floats[*was];
    }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (const ValueId was = same.value(v); was != no_value) now.wide[v] = before.wide[was];
  return now;
}

// By group, but for closed ones: a tensor whose range counted in the group of before that it is. nullopt: one has a
// tensor that is new, or lost one.
std::optional<std::map<ValueId, ValueId>> same_groups(const Calibrated& before, const QuantisationPlan& plan,
                                                      const std::set<ValueId>& closed, const Successors& same) {
  std::map<ValueId, ValueId> found;
  std::map<ValueId, int> left;  // tensors of a group of before that were not met
  for (ValueId v = 0; v < before.plan.group.size(); ++v)
    if (before.plan.range_counts(v)) ++left[before.plan.group[v]];
  for (ValueId v = 0; v < plan.group.size(); ++v) {
    if (!plan.range_counts(v) || closed.contains(plan.group[v])) continue;
    const ValueId was = same.value(v);
    if (was == no_value || !before.plan.range_counts(was)) return std::nullopt;
    const auto [member, fresh] = found.try_emplace(plan.group[v], was);
    const ValueId group = before.plan.group[was];
    if (before.plan.group[member->second] != group) return std::nullopt;
    --left[group];
  }
  for (const auto& [group, was] : found)
    if (left[before.plan.group[was]] != 0) return std::nullopt;
  return found;
}

// Samples may have asked for 16 bits. False: the program asks for more than it did.
bool carry_widths(const QuantisationPlan& before, const std::map<ValueId, ValueId>& groups, QuantisationPlan& plan) {
  for (ValueId v = 0; v < plan.group.size(); ++v) {
    const auto was = plan.quantised[v] ? groups.find(plan.group[v]) : groups.end();
    if (was == groups.end()) continue;
    if (plan.wide[v] && !before.wide[was->second]) return false;
    plan.wide[v] = before.wide[was->second];
  }
  return true;
}

}  // namespace

std::optional<Calibrated> calibrated_with_parts(Calibrated before, Expanded program, const Decisions& decisions,
                                                const QuantiseOptions& options, ValueId kept) {
  const Graph& graph = program.graph;
  const Successors same(before.graph, graph, kept);
  UnlikeRanges unlike_ranges = carried(before.unlike_ranges, graph, same);
  QuantisationPlan plan = plan_quantisation(program, options, unlike_ranges, decisions);
  const std::set<ValueId> closed = closed_groups(program.certain, plan);
  const auto groups = same_groups(before, plan, closed, same);
  if (!groups || !carry_widths(before.plan, *groups, plan)) return std::nullopt;

  std::map<ValueId, Range> certain;  // all that there is to know of closed groups
  include_certain(program.certain, plan, certain);
  std::vector<Range> ranges(graph.values.size());
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    if (!plan.quantised[v]) continue;
    const auto was = groups->find(plan.group[v]);
    ranges[v] = was == groups->end() ? certain[plan.group[v]] : before.ranges[was->second];
  }
  std::map<ValueId, Range> narrow;
  for (const WidthChange& change : plan.width_changes) {
    const ValueId v = graph.nodes[change.node].inputs[change.operand];
    if (change.wide || !plan.quantised[v]) continue;
    const auto was = before.narrow.find(same.value(v));
    if (was == before.narrow.end() && !closed.contains(plan.group[v])) return std::nullopt;
    narrow[v] = closed.contains(plan.group[v]) ? ranges[v] : was->second;
  }
  std::map<ValueId, ValueId> now;
  std::vector<char> cut(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (const ValueId was = same.value(v); was != no_value) {
      now[was] = v;
      cut[v] = before.cut[was];
    }
  for (std::size_t n = 0; n < program.graph.nodes.size(); ++n)
    if (const auto was = same.node(n); was) set_form_of(before.graph.nodes[*was], program.graph.nodes[n]);
  before.means.rename(now);
  before.rows.rename(now);
  return Calibrated{.graph = std::move(program.graph),
                    .plan = std::move(plan),
                    .ranges = std::move(ranges),
                    .narrow = std::move(narrow),
                    .certain = std::move(program.certain),
                    .compared = std::move(before.compared),
                    .first_scaled = no_value,
                    .unlike_ranges = std::move(unlike_ranges),
                    .means = std::move(before.means),
                    .rows = std::move(before.rows),
                    .cut = std::move(cut)};
}

}  // namespace tosaic
