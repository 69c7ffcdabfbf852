// SPDX-License-Identifier: Apache-2.0
#include "quantise/calibrated_on_samples.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "cpu/cpu.h"
#include "lower/lower.h"
#include "quantise/certain_ranges.h"
#include "quantise/counted_factors.h"
#include "quantise/flat_ends.h"
#include "quantise/function_forms.h"
#include "quantise/observable.h"
#include "quantise/observe.h"
#include "quantise/observed_program.h"
#include "quantise/outlying_channels.h"
#include "quantise/saturation.h"
#include "quantise/steep_functions.h"

namespace tosaic {
namespace {

// Groups with a tensor much of which means nothing to its readers: their range is that of the rest, without a histogram
// that would count it. Where `may_widen` allows, they get 16 bits, as the inner tensors of attention have.
std::vector<char> masked_groups(const Graph& graph, QuantisationPlan& plan, Saturation& saturation,
                                std::map<ValueId, Range>& group_ranges) {
  std::vector<int> steps(graph.values.size());
  for (ValueId v = 0; v < steps.size(); ++v) steps[v] = plan.wide[v] ? 65535 : 255;
  saturation.resolve(steps);
  std::vector<char> masked(graph.values.size(), 0), widened(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const ValueId g = plan.group[v];
    if (!plan.quantised[v]) continue;
    if (saturation.meaningful(v)) masked[g] = 1;
    if (saturation.joins_masked(v) && plan.may_widen[g]) widened[g] = 1;
  }
  for (auto& [g, range] : group_ranges)
    if (masked[g]) range = {};
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const ValueId g = plan.group[v];
    if (widened[g]) plan.wide[v] = 1;
    if (masked[g] && plan.range_counts(v))
      group_ranges[g].include(saturation.meaningful(v).value_or(saturation.seen(v)));
  }
  return masked;
}

// Log-probabilities whose masked positions saturate: right for those who read the others, and said.
void say_saturated(const Graph& graph, const Saturation& saturation, const Sink& sink) {
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs) {
      if (!sink || v == no_value || !saturation.logarithms_saturate(node, v)) continue;
      const double least = saturation.meaningful(v)->lowest;
      Diagnostic note =
          warning("calibrate.saturated",
                  fmt::format("masked log-probabilities of '{}' saturate at {:.3g} or below, beneath all others of "
                              "the samples",
                              graph[v].name, least))
              .hint("apply the mask after the model where a program needs its value");
      note.severity = Severity::note;
      sink(located(std::move(note), node.loc));
    }
}

// NaN and infinities, which integers cannot hold: in the samples' own inputs, and where calls first give them. A
// warning where they reach what the program gives; else its readers may well replace them, and it is a note.
void say_not_finite(const Graph& graph, const QuantisationPlan& plan, const Saturation& saturation, const Sink& sink) {
  for (ValueId v : graph.inputs)
    if (saturation.left_out(v))
      sink(warning("calibrate.not-finite",
                   fmt::format("the samples for input '{}' hold NaN or infinities, which its range leaves out",
                               graph[v].name))
               .hint("give samples as the model will see them; NaN is no integer, infinities saturate"));
  const auto holds = [&](ValueId v) { return v != no_value && saturation.left_out(v); };
  std::vector<char> leaves(graph.values.size(), 0);
  for (ValueId v : graph.outputs) leaves[v] = 1;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
    for (ValueId y : node->outputs)
      if (y != no_value && leaves[y] && (!plan.quantised[y] || holds(y)))
        for (ValueId v : node->inputs)
          if (v != no_value) leaves[v] = 1;
  for (const Node& node : graph.nodes) {
    if (std::any_of(node.inputs.begin(), node.inputs.end(), holds)) continue;
    const auto y = std::find_if(node.outputs.begin(), node.outputs.end(), holds);
    if (y == node.outputs.end()) continue;
    Diagnostic d = warning("calibrate.not-finite",
                           fmt::format("{} gives NaN or infinities on the samples, which the range of '{}' leaves out",
                                       node.op, graph[*y].name))
                       .hint(
                           "quantised values represent finite numbers only: keep the operands where the result is "
                           "finite, for instance with clamp");
    if (!leaves[*y]) d.severity = Severity::note;
    sink(located(std::move(d), node.loc));
  }
}

// Of functions, and groups that they read.
struct Functions {
  std::vector<FunctionForm> forms;
  std::set<ValueId> flat_beyond;  // the ranges of these groups
};

// Runs the program on the samples: a range for every value that becomes integers. What cannot be run stays float, what
// is masked may take 16 bits: the plan says so then.
Result<std::vector<Range>> observe(const Graph& graph, const CertainRanges& certain, QuantisationPlan& plan,
                                   const std::vector<std::vector<Tensor>>& samples, RowSizes& rows,
                                   Saturation& saturation, ComparedScalars& compared, LayerMeans& means,
                                   LayerRows& layer_rows, std::map<ValueId, Range>& narrow, Functions& functions,
                                   std::set<ValueId>& wider, const QuantiseOptions& options, const Sink& sink) {
  std::vector<char> unseen;
  CountedFactors factors(graph, plan);
  const std::optional<Graph> more = factors.with_counted(graph, plan);
  const Graph& looked_at = more ? *more : graph;
  TOSAIC_TRY(Lowered lowered, lower_observable(looked_at, unseen, sink));
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (unseen[v]) plan.quantised[v] = 0;
  std::vector<char> wanted = plan.quantised;
  for (ValueId v = graph.values.size(); v < looked_at.values.size(); ++v)
    wanted.push_back(factors.counted(v) && !unseen[v]);
  TOSAIC_TRY(ObservedProgram observed, compile_observed(looked_at, std::move(lowered), wanted, options.threads));
  const bool histogram = options.observer == Observer::histogram;
  std::map<ValueId, Range> group_ranges;
  std::map<ValueId, Histogram> histograms;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (plan.range_counts(v)) group_ranges[plan.group[v]];
  auto see = [&](const TensorView& content, const std::vector<ObservedProgram::Watcher>& values, ThreadPool& pool) {
    const Bytes widened = content.type.dtype == DType::f32 ? Bytes() : converted(content, DType::f32);
    const std::span<const float> x = widened.null() ? content.as<float>() : widened.as<float>();
    const Range range = range_of(x, pool);
    std::vector<ValueId> fed;  // a group sees each tensor once, however many of its members it stands for
    for (const auto& [v, moves] : values) {
      if (factors.counted(v)) {
        factors.see(v, range);
        continue;
      }
      saturation.see(v, x, range);
      rows.see(v, x);
      compared.see(v, x);
      const Look look(x, content.type, moves);
      means.see(v, look, pool);
      layer_rows.see(v, look, pool);
      const ValueId g = plan.group[v];
      if (plan.hidden[v] || std::count(fed.begin(), fed.end(), g)) continue;
      fed.push_back(g);
      group_ranges[g].include(range);
      if (histogram) histograms[g].add(x, range, pool);
    }
  };
  const cpu::Observer observer = [&](ValueId v, const TensorView& content, ThreadPool& pool) {
    if (auto it = observed.watchers.find(v); it != observed.watchers.end()) see(content, it->second, pool);
  };
  for (std::size_t done = 0; done < samples.size();) {
    if (options.cancelled && options.cancelled()) return error("compile.cancelled", "the compilation was cancelled");
    auto run = observed.program.run(samples[done], &observer);
    if (!run.ok()) return run.error();
    ++done;
    if (options.progress) options.progress(done, samples.size());
  }
  // The samples may choose few of a table's elements; its quantised values have to hold all of them.
  ThreadPool alone(1);
  for (auto [table, result] : plan.chosen_from)
    see({graph[table].type, graph[table].constant.data()}, {{result, {}}}, alone);
  std::vector<char> masked = masked_groups(graph, plan, saturation, group_ranges);
  for (const auto& [g, range] : factors.ranges(group_ranges)) {
    group_ranges[g] = range;
    masked[g] = 1;
  }
  for (const ValueId g : include_certain(certain, plan, group_ranges)) masked[g] = 1;
  if (options.widen_steep) {
    widen_steep_operands(graph, group_ranges, histograms, options.float_outputs, plan);
    wider.merge(widen_outlying_channels(graph, group_ranges, histograms, rows.norms(), options.float_outputs, plan));
  }
  say_saturated(graph, saturation, sink);
  if (sink) say_not_finite(graph, plan, saturation, sink);
  for (const WidthChange& change : plan.width_changes) {
    if (change.wide) continue;
    const ValueId v = graph.nodes[change.node].inputs[change.operand], g = plan.group[v];
    const auto histogram_of = histograms.find(g);
    if (!plan.quantised[v]) continue;
    narrow[v] =
        masked[g] || histogram_of == histograms.end() ? group_ranges.at(g) : histogram_of->second.best_range(255);
  }
  std::vector<std::pair<const ValueId, Histogram>*> counted;
  for (auto& entry : histograms)
    if (!masked[entry.first]) counted.push_back(&entry);
  in_parallel(counted.size(), 4, [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      group_ranges.at(counted[i]->first) = counted[i]->second.best_range(plan.wide[counted[i]->first] ? 65535 : 255);
  });
  if (options.scheme == Scheme::int16x8) functions.flat_beyond = end_where_flat(graph, plan, group_ranges);
  functions.forms = function_forms(graph, group_ranges, histograms, plan, options);
  std::vector<Range> ranges(graph.values.size());
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (plan.quantised[v]) ranges[v] = group_ranges[plan.group[v]];
  return ranges;
}

}  // namespace

Result<Calibrated> calibrated_on(const std::vector<std::vector<Tensor>>& samples, Expanded program,
                                 const Decisions& decisions, std::set<ValueId>& widened, RowSizes& rows,
                                 const QuantiseOptions& options, const Sink& sink) {
  TOSAIC_TRY(UnlikeRanges unlike_ranges, find_unlike_ranges(program.graph, samples, options, sink));
  if (options.scalars_stay) keep_scalars_float(program.graph, unlike_ranges.floats);
  for (bool again = false;; again = true) {
    for (ValueId v : widened) unlike_ranges.wide[v] = 1;
    std::vector<Diagnostic> said;
    const Sink hold = [&](Diagnostic d) { said.push_back(std::move(d)); };
    QuantisationPlan plan = plan_quantisation(program, options, unlike_ranges, decisions);
    Saturation saturation(program.graph);
    ComparedScalars compared(program.graph);
    LayerMeans means = options.bias_correction ? means_wanted(program.graph, plan, samples.size()) : LayerMeans();
    LayerRows layer_rows(program.graph, plan, options, samples.size());
    std::map<ValueId, Range> narrow;
    Functions functions;
    std::set<ValueId> wider;
    TOSAIC_TRY(std::vector<Range> ranges,
               observe(program.graph, program.certain, plan, samples, rows, saturation, compared, means, layer_rows,
                       narrow, functions, wider, options, sink ? hold : Sink()));
    // Later values may be others when the program was written anew.
    for (ValueId v : wider)
      if (v < program.first_scaled) widened.insert(v);
    if (!again) {
      const bool joined = join_masked(program.graph, saturation, unlike_ranges);
      if (find_unlike_scalars(program.graph, saturation, options, unlike_ranges) || joined) continue;
    }
    if (sink)
      for (const auto& [n, d] : unlike_ranges.warnings)
        if (program.graph.nodes[n].outputs[0] < program.first_scaled) sink(d);
    for (Diagnostic& d : said) sink(std::move(d));
    for (const FunctionForm& form : functions.forms) set_form(program.graph.nodes[form.node], form);
    std::vector<char> cut(program.graph.values.size(), 0);
    for (ValueId v = 0; v < cut.size(); ++v)
      cut[v] = saturation.meaningful(v).has_value() || functions.flat_beyond.contains(plan.group[v]);
    return Calibrated{.graph = std::move(program.graph),
                      .plan = std::move(plan),
                      .ranges = std::move(ranges),
                      .narrow = std::move(narrow),
                      .certain = std::move(program.certain),
                      .compared = std::move(compared),
                      .first_scaled = no_value,
                      .unlike_ranges = std::move(unlike_ranges),
                      .means = std::move(means),
                      .rows = std::move(layer_rows),
                      .cut = std::move(cut)};
  }
}

}  // namespace tosaic
