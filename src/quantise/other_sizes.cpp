// SPDX-License-Identifier: Apache-2.0
// Programs whose sizes vary have one plan and one range for each tensor, whatever the size: what samples of some sizes
// say holds for all. The program at each size is one and the same but for its shapes, which is looked at here.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ir/marks.h"
#include "ir/tensor.h"
#include "quantise/calibration.h"
#include "quantise/function_forms.h"
#include "quantise/large_pools.h"
#include "quantise/norms_anew.h"
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

// Functions have the forms at all sizes that samples of one ask for.
void same_forms(const Graph& from, Graph& to) {
  for (std::size_t n = 0; n < to.nodes.size(); ++n) set_form_of(from.nodes[n], to.nodes[n]);
}

// Constants that grow with the sizes (positions, masks) have the scale of the largest one at all sizes.
void note_largest(const Graph& known, Graph& graph, std::map<ValueId, double>& largest) {
  const auto magnitude = [](const Value& v) {
    double most = 0;
    for (std::int64_t i = 0; is_float(v.type.dtype) && i < v.type.shape.elements(); ++i) {
      const double x = std::fabs(element_as_double(v.type.dtype, v.constant.data(), static_cast<std::size_t>(i)));
      if (std::isfinite(x)) most = std::max(most, x);
    }
    return most;
  };
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].is_constant() && graph[v].type.shape != known[v].type.shape)
      largest[v] = std::max({largest[v], magnitude(known[v]), magnitude(graph[v])});
  for (Node& node : graph.nodes) {
    std::vector<double> of_operands;
    for (ValueId v : node.inputs) {
      const auto found = v == no_value ? largest.end() : largest.find(v);
      of_operands.push_back(found == largest.end() ? 0 : found->second);
    }
    if (std::ranges::any_of(of_operands, [](double most) { return most > 0; }))
      set_mark(node, mark::largest, std::move(of_operands));
  }
}

// The larger of what two sizes say, where they say it of the same round.
void include(RowScaling& round, const RowScaling& other) {
  if (round.largest.size() != other.largest.size() || round.norms.size() != other.norms.size()) return;
  for (std::size_t v = 0; v < round.largest.size(); ++v) {
    round.largest[v] = std::max(round.largest[v], other.largest[v]);
    round.wide[v] = static_cast<char>(round.wide[v] | other.wide[v]);
  }
  for (std::size_t i = 0; i < round.ends.size() && i < other.ends.size(); ++i)
    if (!other.ends[i].empty() && (round.ends[i].empty() || other.ends[i].at.back() > round.ends[i].at.back()))
      round.ends[i] = other.ends[i];
}

}  // namespace

std::shared_ptr<const NormRounds> norms_of_all_sizes(std::span<Calibration* const> at_sizes) {
  if (at_sizes.size() < 2) return nullptr;
  const auto rounds_of = [](Calibration* c) -> const std::vector<RowScaling>& { return c->impl().found.rounds; };
  Calibration* most = *std::ranges::max_element(at_sizes, {}, [&](Calibration* c) { return rounds_of(c).size(); });
  if (rounds_of(most).empty()) return nullptr;
  auto all = std::make_shared<NormRounds>(NormRounds{rounds_of(most)});
  for (Calibration* other : at_sizes)
    for (std::size_t r = 0; r < rounds_of(other).size(); ++r) include(all->rounds[r], rounds_of(other)[r]);
  return all;
}

Status share_ranges(std::span<Calibration* const> at_sizes) {
  if (at_sizes.size() < 2) return {};
  Calibration::Impl& first = at_sizes[0]->impl();
  int averaged = 1;
  for (Calibration* other : at_sizes.subspan(1)) {
    const Calibration::Impl& more = other->impl();
    TOSAIC_CHECK(has_no_bodies(more.found.graph));
    TOSAIC_CHECK(is_one_program(first.found.graph, more.found.graph));
    same_forms(more.found.graph, first.found.graph);
    QuantisationPlan theirs = more.found.plan;
    for (ValueId v = 0; v < theirs.wide.size(); ++v)  // what samples of any size want in 16 bits has them at all
      theirs.wide[v] = first.found.plan.wide[v] = static_cast<char>(theirs.wide[v] | first.found.plan.wide[v]);
    // What constants are made of (positions, masks) may grow with the sizes.
    for (ValueId v = 0; v < theirs.bounds.size(); ++v) {
      tosa::Bounds& known = first.found.plan.bounds[v];
      known = {std::min(known.lowest, theirs.bounds[v].lowest), std::max(known.highest, theirs.bounds[v].highest)};
      theirs.bounds[v] = known;
    }
    if (first.found.plan != theirs) return another_program(more.found.graph, more.found.graph.name, nullptr);
    for (ValueId v = 0; v < first.found.ranges.size(); ++v) first.found.ranges[v].include(more.found.ranges[v]);
    for (const auto& [v, range] : more.found.narrow) first.found.narrow[v].include(range);
    for (ValueId v = 0; v < first.exact.size(); ++v) first.exact[v] &= more.exact[v];
    average_with(first.found.shifts, more.found.shifts, ++averaged);
  }
  return {};
}

namespace {
std::optional<Dim> known_size(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim) {
  const auto it = options.varying.find(graph[v].name);
  if (it == options.varying.end() || it->second.rank() != graph[v].type.rank()) return std::nullopt;
  return it->second[dim];
}
}  // namespace

bool size_stays(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim) {
  if (options.varying.empty()) return true;
  const auto size = known_size(options, graph, v, dim);
  return size && size->is_number();
}

bool size_varies(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim) {
  const auto size = known_size(options, graph, v, dim);
  return size && !size->is_number();
}

Result<Calibration> calibrated_at(Calibration& other, Graph graph, const QuantiseOptions& options, const Sink& sink) {
  const Calibrated& known = other.impl().found;
  TOSAIC_CHECK(has_no_bodies(graph));
  const StatesAsTensors states(graph);
  std::vector<char> inner;
  KnownBounds bounds;
  TOSAIC_CHECK(expand_calls(graph, inner, bounds, options));
  CertainRanges certain;  // in the ranges that are known
  QuantiseOptions as_known = options;
  as_known.varying = known.varying;
  average_with_ranges(graph, inner, as_known);
  weights_in_two(graph, inner, as_known);
  hold_sums_of_shares(graph, inner, certain, as_known);
  ScaledRows scaled;
  write_norms_as(known.rounds, graph, inner, certain, scaled, options);
  linear_forms(graph, inner, as_known);
  TOSAIC_CHECK(is_one_program(known.graph, graph));
  same_forms(known.graph, graph);
  if (!options.varying.empty()) note_largest(known.graph, graph, other.impl().found.largest);
  Calibrated here{std::move(graph), known.plan,         known.ranges, known.narrow, known.certain,
                  known.compared,   known.first_scaled, {},           {},           {},
                  known.rounded,    known.shifts,       known.rounds, known.varying};
  return Calibration(
      std::make_unique<Calibration::Impl>(Calibration::Impl{std::move(here), other.impl().exact, states, {}, sink}));
}

}  // namespace tosaic
