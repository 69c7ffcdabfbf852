// SPDX-License-Identifier: Apache-2.0
#include "quantise/quantise.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/parallel.h"
#include "cpu/cpu.h"
#include "ir/states.h"
#include "lower/lower.h"
#include "quantise/bias_correction.h"
#include "quantise/calibration.h"
#include "quantise/counted_factors.h"
#include "quantise/large_pools.h"
#include "quantise/norms_anew.h"
#include "quantise/observable.h"
#include "quantise/observe.h"
#include "quantise/observed_program.h"
#include "quantise/quantise_weight.h"
#include "quantise/rounded_weights.h"
#include "quantise/row_norms.h"
#include "quantise/saturation.h"
#include "quantise/scaled_values.h"
#include "quantise/state_samples.h"
#include "quantise/steep_functions.h"
#include "quantise/sums_of_shares.h"
#include "quantise/unlike_ranges.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

Status check_samples(const Graph& graph, const std::vector<std::vector<Tensor>>& samples) {
  if (samples.empty())
    return error("calibrate.no-samples", "an integer target needs sample inputs to choose its scales from")
        .hint("give --calibrate FILE.npz with one array per input, samples stacked along a new first axis");
  for (std::size_t s = 0; s < samples.size(); ++s) {
    if (samples[s].size() != graph.inputs.size())
      return error("calibrate.sample-count", fmt::format("sample {} has {} tensors, the model has {} inputs", s,
                                                         samples[s].size(), graph.inputs.size()));
    for (std::size_t i = 0; i < samples[s].size(); ++i) {
      const TensorType &given = samples[s][i].type, &wanted = graph[graph.inputs[i]].type;
      if (given.dtype != wanted.dtype || given.shape.sizes() != wanted.shape.sizes())
        return error("calibrate.sample-type",
                     fmt::format("sample {} for input '{}' is {}, the model takes {}", s, graph[graph.inputs[i]].name,
                                 to_string(given), to_string(wanted)));
    }
  }
  return {};
}

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
    if (masked[g] && plan.quantised[v] && !plan.hidden[v])
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

// Runs the program on the samples: a range for every value that becomes integers. What cannot be run stays float, what
// is masked may take 16 bits: the plan says so then.
Result<std::vector<Range>> observe(const Graph& graph, const CertainRanges& certain, QuantisationPlan& plan,
                                   const std::vector<std::vector<Tensor>>& samples, RowSizes& rows,
                                   Saturation& saturation, ComparedScalars& compared, OperandMeans& means,
                                   LayerRows& layer_rows, std::map<ValueId, Range>& narrow,
                                   const QuantiseOptions& options, const Sink& sink) {
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
    if (plan.quantised[v] && !plan.hidden[v]) group_ranges[plan.group[v]];
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
      means.see(v, content.type, x, moves, pool);
      layer_rows.see(v, x, content.type, moves, pool);
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
  for (const auto& [v, range] : certain)
    if (range.closed && plan.quantised[v] && !plan.hidden[v]) group_ranges[plan.group[v]] = {};
  for (const auto& [v, range] : certain) {
    if (!plan.quantised[v] || plan.hidden[v]) continue;
    Range& seen = group_ranges[plan.group[v]];
    const double most = range.most * std::max(-seen.lowest, seen.highest);
    seen.include(Range{std::max(range.lowest, -most), std::min(range.highest, most)});
    masked[plan.group[v]] = 1;
  }
  if (options.widen_steep) widen_steep_operands(graph, group_ranges, histograms, plan);
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
  std::vector<Range> ranges(graph.values.size());
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (plan.quantised[v]) ranges[v] = group_ranges[plan.group[v]];
  return ranges;
}

Result<Calibrated> calibrated(Expanded program, const Decisions& decisions,
                              const std::vector<std::vector<Tensor>>& samples, const std::set<ValueId>& widened,
                              RowSizes& rows, const QuantiseOptions& options, const Sink& sink) {
  TOSAIC_TRY(UnlikeRanges unlike_ranges, find_unlike_ranges(program.graph, samples, options, sink));
  for (ValueId v : widened) unlike_ranges.wide[v] = 1;
  if (options.scalars_stay) keep_scalars_float(program.graph, unlike_ranges.floats);
  for (bool again = false;; again = true) {
    std::vector<Diagnostic> said;
    const Sink hold = [&](Diagnostic d) { said.push_back(std::move(d)); };
    QuantisationPlan plan = plan_quantisation(program, options, unlike_ranges, decisions);
    Saturation saturation(program.graph);
    ComparedScalars compared(program.graph);
    OperandMeans means = options.bias_correction ? OperandMeans(program.graph, plan) : OperandMeans();
    LayerRows layer_rows(program.graph, plan, options, samples.size());
    std::map<ValueId, Range> narrow;
    TOSAIC_TRY(std::vector<Range> ranges, observe(program.graph, program.certain, plan, samples, rows, saturation,
                                                  compared, means, layer_rows, narrow, options, sink ? hold : Sink()));
    if (!again && find_unlike_scalars(program.graph, saturation, options, unlike_ranges, sink)) continue;
    for (Diagnostic& d : said) sink(std::move(d));
    return Calibrated{std::move(program.graph),   std::move(plan),     std::move(ranges), std::move(narrow),
                      std::move(program.certain), std::move(compared), no_value,          std::move(means),
                      std::move(layer_rows)};
  }
}

// Norms whose rows are not scaled yet: another row may be of any size, whatever those of the samples are. `alike` says
// of each whether those are. `graph`: as the norms were found in it, before linear_forms.
std::vector<RowNorm> unscaled_norms(const Graph& graph, const Calibrated& c, const std::vector<RowNorm>& norms,
                                    const RowSizes& rows, const std::vector<char>& inner, const ScaledRows& scaled,
                                    const QuantiseOptions& options) {
  std::vector<RowNorm> found;
  for (RowNorm norm : norms) {
    if (scaled.done.contains(norm.rows) || scaled.done.contains(graph.nodes[norm.product].outputs[0])) continue;
    if (c.certain.contains(norm.size)) continue;  // the greatest of a row is 1
    if (norm.kind == RowNorm::Kind::plain && c.ranges[norm.rows].lowest < 0) continue;
    const bool to_eight_bits = options.scheme == Scheme::int8 && inner[norm.size];
    // A program of varying sizes is one program whatever samples of one size show.
    norm.alike = !options.varying.empty() || rows.unlikeness(norm) <= (to_eight_bits ? 8 : 4);
    if (norm.alike && scaled.done.contains(norm.source)) continue;  // x - mean(x) of scaled rows
    found.push_back(std::move(norm));
  }
  return found;
}

// Can all that holds quantised values of v have 16 bits? An input has what its caller expects.
bool widens(const Calibrated& c, ValueId v) {
  const ValueId g = c.plan.group[v];
  for (ValueId w = 0; w < c.graph.values.size(); ++w) {
    if (c.plan.group[w] != g) continue;
    if (std::count(c.graph.inputs.begin(), c.graph.inputs.end(), w) || !may_be_wide(c.graph, w)) return false;
    if (!c.plan.widths.empty() && c.plan.widths[w] == Form::int8) return false;  // that is decided
  }
  return true;
}

// Eight bits leave nothing of rows that are so much smaller than others.
void widen_rows(const Graph& graph, Calibrated& c, const std::vector<RowNorm>& norms, const RowSizes& rows,
                std::set<ValueId>& widened, const QuantiseOptions& options, const Sink& sink) {
  constexpr double much = 16;
  for (const RowNorm& norm : norms) {
    const ValueId x = norm.source;
    const double factor = rows.unlikeness(norm);
    if (c.plan.wide[x] || !(factor > much) || widened.contains(x)) continue;
    const bool wider = options.wide_inside && widens(c, x);
    if (wider) widened.insert(x);
    if (sink)
      sink(located(warning("quantise.unlike-rows",
                           fmt::format("rows of '{}' that are normalised differ in size by a factor of {:.3g}",
                                       c.graph[x].name, factor))
                       .note(wider ? std::string("the tensor takes 16 bits")
                                   : fmt::format("of 127 quantised values, {} are left to the smallest",
                                                 static_cast<int>(127 / factor)))
                       .hint(wider ? "" : "use --quantize int16x8"),
                   graph.nodes[norm.product].loc));
  }
  for (ValueId v : widened) c.plan.wide[v] = 1;
}

// What is decided about the program, in the form that it was planned in and in those with scaled rows.
class Decider {
 public:
  Decider(const QuantiseOptions& options, ValueId kept, const Sink& sink)
      : options_(options), kept_(kept), sink_(sink) {}
  Result<Decisions> about(const Expanded& program) {
    if (options_.request.empty()) return Decisions{};
    if (first_) {
      CarriedOver now = carried_over(decided_, options_.request, *first_, program.graph, kept_);
      say_lost(now.lost);
      return std::move(now.decisions);
    }
    TOSAIC_TRY(decided_, decide(program, options_.request, options_));
    if (options_.spec) TOSAIC_CHECK(check_decisions(program, decided_, options_, *options_.spec));
    first_ = program.graph;
    if (const PlanRequest& plan = options_.request;
        sink_ && !plan.program.empty() && plan.program != fingerprint(options_.exported))
      sink_(
          warning("plan.not-this-program", "the plan was made for another program: what it names may be something else")
              .at(plan.program_at)
              .hint("make one of this program: `tosaic tune -o FILE`; or delete the line that says for which it is"));
    for (const Override* given : without_effect(program, options_.request, decided_))
      if (sink_)
        sink_(warning("plan.without-effect", fmt::format("no computation follows '{}'", given->text()))
                  .at(given->place)
                  .hint("its nodes were folded into others, move data only, or a later line decides about them"));
    return decided_;
  }

 private:
  void say_lost(const std::vector<Place>& lines) {
    for (const Place& line : lines)
      if (sink_ && said_.insert(line.line).second)
        sink_(warning("plan.without-effect",
                      "the line has no effect: rows of unlike size are scaled before they are normalised, and the norm "
                      "is then decomposed differently")
                  .at(line)
                  .hint("decide about the norm by its name: that holds however it is decomposed"));
  }

  const QuantiseOptions& options_;
  const ValueId kept_;  // values below are the same in all forms
  const Sink& sink_;
  std::optional<Graph> first_;
  Decisions decided_;
  std::set<std::int64_t> said_;  // lines
};

// Calibrates, and again where rows are to be scaled first, which takes the range of their elements.
struct KnownInside {
  KnownBounds bounds;
  CertainRanges certain;
};
Result<Calibrated> calibrated_by_rows(Graph graph, std::vector<char> inner, KnownInside known,
                                      const std::vector<std::vector<Tensor>>& samples, const QuantiseOptions& options,
                                      const Sink& sink) {
  constexpr int most_scaled = 3;  // rows of x, then of x - mean(x)
  constexpr int most = 5;         // norms in parts, too, and of these what could not be
  ScaledRows scaled;
  std::set<ValueId> refused;  // sizes
  std::set<ValueId> widened;
  const auto first_scaled = static_cast<ValueId>(graph.values.size());
  Decider decider(options, first_scaled, sink);
  std::vector<RowScaling> rounds;
  for (int round = 1;; ++round) {
    Expanded program{graph, inner, known.bounds, known.certain};
    options.rewrite("linear_forms", program.graph, linear_forms, program.inner);
    TOSAIC_TRY(const Decisions decisions, decider.about(program));
    const auto norms = find_row_norms(graph);
    RowSizes rows(norms);
    std::vector<Diagnostic> said;
    const Sink hold = [&](Diagnostic d) { said.push_back(std::move(d)); };
    TOSAIC_TRY(Calibrated result,
               calibrated(std::move(program), decisions, samples, widened, rows, options, sink ? hold : Sink()));
    auto found = unscaled_norms(graph, result, norms, rows, inner, scaled, options);
    if (round == most) found.clear();
    if (round >= most_scaled) std::erase_if(found, [](const RowNorm& norm) { return !norm.alike; });
    widen_rows(graph, result, found, rows, widened, options, sink);
    const bool done = found.empty() || !options.wide_inside;
    // Named in the last round as well: what a calibration can rewrite does not depend on the samples.
    options.rewrite("write_norms_anew", graph, [&](Graph& norms_of) {
      if (done) return;
      rounds.push_back(
          write_norms_anew(norms_of, std::move(found), result, rows, inner, known.certain, scaled, refused, options));
    });
    if (done) {
      for (Diagnostic& d : said) sink(std::move(d));
      if (round > 1) result.first_scaled = first_scaled;
      for (auto [mean, of] : scaled.means) result.ranges[mean].include(result.ranges[of]);
      result.rounds = std::move(rounds);
      result.varying = options.varying;
      return result;
    }
  }
}

// Groups whose ranges need no room for values larger than the samples'.
std::vector<char> exact_groups(const Calibrated& c, const QuantiseOptions& options) {
  std::vector<char> exact(c.graph.values.size(), options.scheme != Scheme::int16x8);
  for (ValueId v = c.first_scaled; v < exact.size(); ++v) exact[c.plan.group[v]] = 0;
  const std::vector<char> none = without_headroom(c.graph, c.ranges);
  for (ValueId v = 0; v < exact.size(); ++v)
    if (none[v]) exact[c.plan.group[v]] = 1;
  for (const auto& [v, range] : c.certain)
    if (std::isinf(range.most)) exact[c.plan.group[v]] = 1;
  for (auto [table, result] : c.plan.chosen_from) exact[c.plan.group[result]] = 1;  // nothing is larger
  return exact;
}

Tensor to_nearest(ValueId, const Tensor& content, int axis, DType dtype) {
  return dtype == DType::i16 ? quantise_matrix_to_int16(content) : quantise_weight(content, axis, dtype == DType::i4);
}
// What the samples say of some weights, else the nearest values.
QuantiseWeight as_rounded(const RoundedWeights& rounded) {
  return [&](ValueId v, const Tensor& content, int axis, DType dtype) {
    const auto found = rounded.find({v, axis, dtype});
    return found == rounded.end() ? to_nearest(v, content, axis, dtype) : found->second;
  };
}

}  // namespace

Result<Calibration> calibrate(Graph graph, const std::vector<std::vector<Tensor>>& inputs,
                              const QuantiseOptions& options, const Sink& sink, StateContents& contents) {
  TOSAIC_CHECK(check_samples(graph, inputs));
  const StatesAsTensors states(graph);
  TOSAIC_TRY(const auto samples, with_states(graph, inputs, states, contents, options.threads, sink));
  TOSAIC_TRY(QuantisedBodies bodies, quantised_bodies(graph, samples, options, sink));
  std::vector<char> inner(graph.values.size(), 0);
  TOSAIC_TRY(const StaysWhole whole, stays_whole(options));
  KnownBounds bounds;
  const Rewrites& rewrite = options.rewrite;
  TOSAIC_CHECK(rewrite("expand_composites", graph, expand_composites, inner, bounds, whole));
  CertainRanges certain;
  rewrite("average_with_ranges", graph, average_with_ranges, inner, options);
  rewrite("hold_sums_of_shares", graph, hold_sums_of_shares, inner, certain, options);
  KnownInside known{std::move(bounds), std::move(certain)};
  TOSAIC_TRY(Calibrated found,
             calibrated_by_rows(std::move(graph), std::move(inner), std::move(known), samples, options, sink));
  std::vector<char> exact = exact_groups(found, options);
  found.rounded = round_weights(found.graph, std::exchange(found.rows, {}), to_nearest, options.threads);
  TOSAIC_TRY(found.shifts,
             find_bias_shifts(found.graph, found.plan, found.means, as_rounded(found.rounded), options.threads));
  found.means = {};
  return Calibration(std::make_unique<Calibration::Impl>(
      Calibration::Impl{std::move(found), std::move(exact), states, std::move(bodies), sink, rewrite}));
}

Result<Graph> quantised(Calibration calibration) {
  auto& [found, exact, states, bodies, sink, rewrite] = calibration.impl();
  Graph& body = found.graph;
  rewrite("give_types", body, give_types, found.plan, found.ranges, exact);
  rewrite("keep_scaled_values", body, keep_scaled_values, found.plan);
  std::vector<char> floating(body.nodes.size());
  for (std::size_t n = 0; n < floating.size(); ++n) floating[n] = found.plan.floating(n);
  rewrite("leave_unresolved_float", body, leave_unresolved_float, floating, sink);
  rewrite("give_weights", body, give_weights, found.plan, as_rounded(found.rounded));
  rewrite("correct_biases", body, correct_biases, found.plan, found.shifts);
  rewrite("insert_width_changes", body, insert_width_changes, found.plan, found.narrow);
  rewrite("round_compared_scalars", body, [&compared = found.compared](Graph& graph) { compared.round(graph); });
  rewrite("drop_dead", body, drop_dead);
  rewrite("put_bodies", body, [&quantised = bodies](Graph& graph) { put_bodies(graph, std::move(quantised)); });
  rewrite("make_names_unique", body, make_names_unique);
  states.restore(body);
  return std::move(body);
}

Result<Graph> quantise(Graph graph, const std::vector<std::vector<Tensor>>& samples, const QuantiseOptions& options,
                       const Sink& sink) {
  StateContents contents;
  TOSAIC_TRY(Calibration found, calibrate(std::move(graph), samples, options, sink, contents));
  return quantised(std::move(found));
}

}  // namespace tosaic
