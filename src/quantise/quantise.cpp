// SPDX-License-Identifier: Apache-2.0
#include "quantise/quantise.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "ir/states.h"
#include "quantise/bias_correction.h"
#include "quantise/calibrated_on_samples.h"
#include "quantise/calibrated_parts.h"
#include "quantise/calibration.h"
#include "quantise/channel_offsets.h"
#include "quantise/equalisation.h"
#include "quantise/large_pools.h"
#include "quantise/norms_anew.h"
#include "quantise/quantise_weight.h"
#include "quantise/rounded_weights.h"
#include "quantise/row_norms.h"
#include "quantise/scaled_values.h"
#include "quantise/state_samples.h"
#include "quantise/sums_of_shares.h"
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

// What was done about norms, for other sizes of the program.
void keep_rounds(Calibrated& found, const ScaledRows& scaled, std::vector<RowScaling> rounds,
                 const QuantiseOptions& options) {
  for (auto [mean, of] : scaled.means) found.ranges[mean].include(found.ranges[of]);
  found.rounds = std::move(rounds);
  found.varying = options.varying;
}

// Calibrates, and again where rows are to be scaled first, which takes the range of their elements. What norms in parts
// need is known without running the samples once more, unless some could not be held so.
struct KnownInside {
  KnownBounds bounds;
  CertainRanges certain;
};
Result<Calibrated> calibrated_by_rows(Graph graph, std::vector<char> inner, KnownInside inside,
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
  std::optional<Calibrated> before;  // of the round before, which left norms in parts and nothing else
  std::vector<Diagnostic> said;
  auto kept = first_scaled;  // values below were there in the round before
  for (int round = 1;; ++round) {
    Expanded program{graph, inner, inside.bounds, inside.certain, first_scaled};
    options.rewrite("linear_forms", program.graph, linear_forms, program.inner, options);
    TOSAIC_TRY(const Decisions decisions, decider.about(program));
    const auto norms = find_row_norms(graph);
    RowSizes rows(norms);
    std::vector<RowNorm> found;
    const auto find_unscaled = [&](const Calibrated& c) {
      found = unscaled_norms(graph, c, norms, rows, inner, scaled, options);
      return !found.empty();
    };
    std::optional<Calibrated> known;
    if (before) known = calibrated_with_parts(*std::exchange(before, std::nullopt), program, decisions, options, kept);
    if (!known || find_unscaled(*known)) {
      said.clear();
      const Sink hold = [&](Diagnostic d) { said.push_back(std::move(d)); };
      TOSAIC_TRY(known,
                 calibrated_on(samples, std::move(program), decisions, widened, rows, options, sink ? hold : Sink()));
      find_unscaled(*known);
    }
    Calibrated& result = *known;
    if (round == most) found.clear();
    if (round >= most_scaled) std::erase_if(found, [](const RowNorm& norm) { return !norm.alike; });
    widen_rows(graph, result, found, rows, widened, options, sink);
    const bool done = found.empty() || !options.wide_inside;
    // Named in the last round as well: what a calibration can rewrite does not depend on the samples.
    bool only_parts = false;
    kept = static_cast<ValueId>(graph.values.size());
    options.rewrite("write_norms_anew", graph, [&](Graph& norms_of) {
      if (done) return;
      rounds.push_back(
          write_norms_anew(norms_of, std::move(found), result, rows, inner, inside.certain, scaled, refused, options));
      only_parts = rounds.back().only_parts();
    });
    if (done) {
      for (Diagnostic& d : said) sink(std::move(d));
      if (round > 1) result.first_scaled = first_scaled;
      keep_rounds(result, scaled, std::move(rounds), options);
      return std::move(result);
    }
    if (only_parts) before = std::move(known);
  }
}

// Calibrates once, with norms written as at all sizes of the program.
Result<Calibrated> calibrated_by_known_rows(Graph graph, std::vector<char> inner, KnownInside inside,
                                            const std::vector<std::vector<Tensor>>& samples,
                                            const QuantiseOptions& options, const Sink& sink) {
  const auto first_scaled = static_cast<ValueId>(graph.values.size());
  Decider decider(options, first_scaled, sink);
  if (!options.request.empty()) {  // decisions name what there was before
    Expanded before{graph, inner, inside.bounds, inside.certain};
    linear_forms(before.graph, before.inner, options);
    TOSAIC_CHECK(decider.about(before));
  }
  ScaledRows scaled;
  options.rewrite("write_norms_anew", graph, [&](Graph& norms_of) {
    write_norms_as(options.norms_as->rounds, norms_of, inner, inside.certain, scaled, options);
  });
  RowSizes rows(find_row_norms(graph));
  std::set<ValueId> widened;
  Expanded program{std::move(graph), std::move(inner), std::move(inside.bounds), std::move(inside.certain),
                   first_scaled};
  options.rewrite("linear_forms", program.graph, linear_forms, program.inner, options);
  TOSAIC_TRY(const Decisions decisions, decider.about(program));
  TOSAIC_TRY(Calibrated found, calibrated_on(samples, std::move(program), decisions, widened, rows, options, sink));
  found.first_scaled = first_scaled;
  keep_rounds(found, scaled, options.norms_as->rounds, options);
  return found;
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
// What the samples say of some weights, else the nearest values, which are kept: biases ask for them, then the program.
QuantiseWeight as_rounded(RoundedWeights& rounded) {
  return [&rounded, guard = std::make_shared<std::mutex>()](ValueId v, const Tensor& content, int axis, DType dtype) {
    const WeightKey key{v, axis, dtype};
    {
      const std::lock_guard lock(*guard);
      if (const auto found = rounded.find(key); found != rounded.end()) return found->second;
    }
    Tensor nearest = to_nearest(v, content, axis, dtype);
    const std::lock_guard lock(*guard);
    return rounded.try_emplace(key, std::move(nearest)).first->second;
  };
}

// What quantisation begins with: the program with its states as tensors, and samples that have these as well.
struct Beginning {
  Graph graph;
  StatesAsTensors states{graph};
  std::vector<std::vector<Tensor>> samples = {};
  std::vector<char> inner = std::vector<char>(graph.values.size());  // as in Expanded
  KnownBounds bounds = {};

  Status expand(const QuantiseOptions& options) { return expand_calls(graph, inner, bounds, options, options.rewrite); }
  Status equalise(const QuantiseOptions& options) {
    TOSAIC_CHECK(options.rewrite("centre_channels", graph, centre_channels, inner, samples, options));
    return options.rewrite("equalise", graph, tosaic::equalise, inner, samples, options);
  }
};
Result<Beginning> beginning(Graph graph, const std::vector<std::vector<Tensor>>& samples,
                            const QuantiseOptions& options, const Sink& sink, StateContents& contents) {
  TOSAIC_CHECK(check_samples(graph, samples));
  Beginning begun{std::move(graph)};
  TOSAIC_TRY(begun.samples, with_states(begun.graph, samples, begun.states, contents, options.threads, sink));
  return begun;
}

}  // namespace

Result<Calibration> calibrate(Graph program, const std::vector<std::vector<Tensor>>& inputs,
                              const QuantiseOptions& options, const Sink& sink, StateContents& contents) {
  TOSAIC_TRY(Beginning begun, beginning(std::move(program), inputs, options, sink, contents));
  TOSAIC_TRY(QuantisedBodies bodies, quantised_bodies(begun.graph, begun.samples, options, sink));
  TOSAIC_CHECK(begun.expand(options));
  TOSAIC_CHECK(begun.equalise(options));
  auto& [graph, states, samples, inner, bounds] = begun;
  const Rewrites& rewrite = options.rewrite;
  CertainRanges certain;
  rewrite("average_with_ranges", graph, average_with_ranges, inner, options);
  rewrite("weights_in_two", graph, weights_in_two, inner, options);
  rewrite("hold_sums_of_shares", graph, hold_sums_of_shares, inner, certain, options);
  KnownInside known{std::move(bounds), std::move(certain)};
  TOSAIC_TRY(Calibrated found, (options.norms_as ? calibrated_by_known_rows : calibrated_by_rows)(
                                   std::move(graph), std::move(inner), std::move(known), samples, options, sink));
  std::vector<char> exact = exact_groups(found, options);
  found.rounded = round_weights(found.graph, std::exchange(found.rows, {}), to_nearest, options.threads);
  found.shifts = find_bias_shifts(found.graph, found.plan, found.means, as_rounded(found.rounded), options.threads);
  found.means = {};
  return Calibration(std::make_unique<Calibration::Impl>(
      Calibration::Impl{std::move(found), std::move(exact), states, std::move(bodies), sink, rewrite}));
}

Result<std::map<std::string, Tensor>> equalised_constants(Graph program, const std::vector<std::vector<Tensor>>& inputs,
                                                          const QuantiseOptions& options, const Sink& sink) {
  StateContents contents;
  TOSAIC_TRY(Beginning begun, beginning(std::move(program), inputs, options, sink, contents));
  TOSAIC_CHECK(begun.expand(options));
  const Graph& graph = begun.graph;
  std::vector<const std::byte*> before;
  for (const Value& v : graph.values) before.push_back(v.constant.data());
  TOSAIC_CHECK(begun.equalise(options));
  std::map<std::string, Tensor> changed;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].constant.data() != before[v]) changed.emplace(graph[v].name, Tensor{graph[v].type, graph[v].constant});
  return changed;
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
  leave_biases_room(body, found.plan);
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
