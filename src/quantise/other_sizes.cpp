// SPDX-License-Identifier: Apache-2.0
// Programs whose sizes vary have one plan and one range for each tensor, whatever the size: what samples of some sizes
// say holds for all. The program at each size is one and the same but for its shapes, which is looked at here.
#include <fmt/format.h>
#include <algorithm>

#include "quantise/calibration.h"
#include "quantise/large_pools.h"
#include "quantise/norms_in_parts.h"
#include "quantise/sums_of_shares.h"

namespace tosaic {
namespace {

Diagnostic another_program(const Graph& graph, std::string_view who, const LocRef& loc) {
  std::string sizes;
  for (ValueId v : graph.inputs)
    sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", graph[v].name, to_string(graph[v].type.shape));
  return located(error("calibrate.sizes",
                       fmt::format("{}: where the sizes are {} the program is another one than where it was calibrated",
                                   who, sizes))
                     .hint("choose the sizes (--sizes NAME=SIZE) and give samples of them"),
                 loc);
}
Diagnostic another_program(const Graph& graph, const Node& node) {
  return another_program(graph, node.op.name(), node.loc);
}

Status is_one_program(const Graph& known, const Graph& graph) {
  const std::size_t n = std::min(known.nodes.size(), graph.nodes.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Node &a = known.nodes[i], &b = graph.nodes[i];
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs) return another_program(graph, b);
  }
  if (known.nodes.size() != graph.nodes.size() || known.values.size() != graph.values.size())
    return n < graph.nodes.size() ? another_program(graph, graph.nodes[n])
                                  : another_program(graph, graph.name, nullptr);
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (known[v].is_constant() != graph[v].is_constant() || known[v].type.dtype != graph[v].type.dtype)
      return another_program(graph, "'" + graph[v].name + "'", nullptr);
  return {};
}

// Bodies have scales by what they are given when the program runs.
Status has_no_bodies(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (!node.regions.empty())
      return located(error("calibrate.sizes",
                           fmt::format("{} stays control flow, whose subgraphs are calibrated at one size", node.op))
                         .hint("choose the sizes: --sizes NAME=SIZE"),
                     node.loc);
  return {};
}

}  // namespace

Status share_ranges(std::span<Calibration* const> at_sizes) {
  if (at_sizes.size() < 2) return {};
  Calibration::Impl& first = at_sizes[0]->impl();
  int averaged = 1;
  for (Calibration* other : at_sizes.subspan(1)) {
    const Calibration::Impl& more = other->impl();
    TOSAIC_CHECK(has_no_bodies(more.found.graph));
    TOSAIC_CHECK(is_one_program(first.found.graph, more.found.graph));
    QuantisationPlan theirs = more.found.plan;
    for (ValueId v = 0; v < theirs.wide.size(); ++v)  // what samples of any size want in 16 bits has them at all
      theirs.wide[v] = first.found.plan.wide[v] = static_cast<char>(theirs.wide[v] | first.found.plan.wide[v]);
    if (first.found.plan != theirs) return another_program(more.found.graph, more.found.graph.name, nullptr);
    for (ValueId v = 0; v < first.found.ranges.size(); ++v) first.found.ranges[v].include(more.found.ranges[v]);
    for (const auto& [v, range] : more.found.narrow) first.found.narrow[v].include(range);
    for (ValueId v = 0; v < first.exact.size(); ++v) first.exact[v] &= more.exact[v];
    average_with(first.found.shifts, more.found.shifts, ++averaged);
  }
  return {};
}

bool size_stays(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim) {
  if (options.varying.empty()) return true;
  const auto it = options.varying.find(graph[v].name);
  return it != options.varying.end() && it->second.rank() == graph[v].type.rank() && it->second[dim].is_number();
}

Result<Calibration> calibrated_at(Calibration& other, Graph graph, const QuantiseOptions& options, const Sink& sink) {
  const Calibrated& known = other.impl().found;
  TOSAIC_CHECK(has_no_bodies(graph));
  const StatesAsTensors states(graph);
  std::vector<char> inner;
  KnownBounds bounds;
  TOSAIC_TRY(const StaysWhole whole, stays_whole(options));
  TOSAIC_CHECK(expand_composites(graph, inner, bounds, whole));
  CertainRanges certain;  // in the ranges that are known
  QuantiseOptions as_known = options;
  as_known.varying = known.varying;
  average_with_ranges(graph, inner, as_known);
  hold_sums_of_shares(graph, inner, certain, as_known);
  ScaledRows scaled;
  std::set<ValueId> refused;
  for (const RowScaling& round : known.rounds)
    if (!round.only_parts()) {
      scale_rows(graph, round.norms, round.largest, round.wide, inner, certain, scaled);
      std::vector<Ends> of_scaled = round.of_scaled;
      hold_scaled_in_parts(graph, scaled, options, inner, certain, of_scaled);
    } else {
      hold_in_parts(graph, round.norms, round.ends, inner, certain, refused);
    }
  linear_forms(graph, inner);
  TOSAIC_CHECK(is_one_program(known.graph, graph));
  Calibrated here{std::move(graph), known.plan,         known.ranges, known.narrow, known.certain,
                  known.compared,   known.first_scaled, {},           {},           {},
                  known.rounded,    known.shifts,       known.rounds, known.varying};
  return Calibration(
      std::make_unique<Calibration::Impl>(Calibration::Impl{std::move(here), other.impl().exact, states, {}, sink}));
}

}  // namespace tosaic
