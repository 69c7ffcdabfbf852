// SPDX-License-Identifier: Apache-2.0
#include "pipeline/steps.h"

#include <algorithm>

#include "execute/executable.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/specialise.h"
#include "ir/states.h"
#include "lower/lower.h"
#include "ops/definitions/rest.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/samples.h"
#include "quantise/control_flow.h"
#include "quantise/finite_samples.h"
#include "quantise/plan.h"
#include "quantise/uniform_samples.h"
#include "quantise/unlike_ranges.h"
#include "quantise/unlike_training.h"

namespace tosaic {
namespace {

// Integers need no scales.
bool computes_floats(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& v) { return is_float(v.type.dtype); });
}

// Quantise and dequantise nodes between integers and floats; quantised values cross into bodies where they have to.
void insert_width_changes(Graph& graph, Io io, const tosa::Spec& spec, const Rewrites& rewrite) {
  rewrite("insert_boundaries", graph, insert_boundaries, io);
  if (!quantises_control_flow(spec)) return;
  rewrite("quantise_control_flow", graph, quantise_control_flow, spec);
  if (io == Io::quantised) rewrite("quantise_io", graph, quantise_io);
}

// What the inputs and outputs of the program are.
Io io_of(bool by_pt2e, bool quantised_io) {
  return quantised_io ? Io::quantised : by_pt2e ? Io::as_written : Io::floats;
}

// What cannot be run hides what reads its results from calibration: all of that stays float.
void leave_unseen_float(const Graph& graph, QuantisationPlan& plan) {
  const std::vector<char> used = used_values(graph);
  std::vector<char> unseen(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    bool hides = std::ranges::any_of(node.inputs, [&](ValueId v) { return v != no_value && unseen[v]; });
    if (!hides) {
      const Result<Trial> trial = try_lowering(graph, node, used, nullptr);
      hides = !trial.ok() || !execute::Executable::check_lowering(trial->graph).ok();
    }
    for (ValueId v : node.outputs)
      if (hides && v != no_value) unseen[v] = 1, plan.quantised[v] = 0;
  }
}

// On nominal scales, bodies that stay by themselves.
Result<Graph> planned(Graph graph, const QuantiseOptions& options) {
  QuantiseOptions inside = options;
  inside.request = {};
  for (Node& node : graph.nodes) {
    if (!has_mark(node, mark::kept)) continue;
    const bool loop = node.op == higher_order::op::while_loop;  // whose condition stays float
    inside.scalars_stay = loop || options.scalars_stay;
    for (std::size_t b = loop ? 1 : 0; b < node.regions.size(); ++b) {
      TOSAIC_TRY(node.regions[b], planned(std::move(node.regions[b]), inside));
      insert_boundaries(node.regions[b], Io::floats);
    }
  }
  widen_half_precision(graph);
  const StatesAsTensors states(graph);
  TOSAIC_TRY(Expanded program, expanded(std::move(graph), options));
  UnlikeRanges pieces;
  if (options.scalars_stay) keep_scalars_float(program.graph, pieces.floats);
  TOSAIC_TRY(QuantisationPlan plan, plan_as_asked(program, options, pieces));
  leave_unseen_float(program.graph, plan);
  graph = on_nominal_scales(std::move(program.graph), plan);
  drop_dead(graph);
  states.restore(graph);
  return graph;
}

// Who asks about a program without samples of his own is not told what those in it lack.
Sink hears_of_samples(const Context& c) { return c.request.invent_samples && !c.given ? Sink() : c.callbacks.sink; }

// The user's samples of a program whose sizes were chosen may have others.
struct Elsewhere {
  Samples samples;  // that were given
  std::optional<Calibration> calibration;
};
Result<Elsewhere> calibrate_elsewhere(const Graph& graph, const Context& c) {
  Elsewhere found;
  if (!c.given || input_symbols(*c.exported).empty()) return found;
  TOSAIC_TRY(found.samples, samples_of_any_sizes(*c.exported, c));
  if (found.samples.empty() || fitting(graph, found.samples).size() == found.samples.size()) return found;
  TOSAIC_TRY(found.calibration, calibrate_over_sizes(*c.exported, found.samples, c));
  return found;
}

}  // namespace

Result<Observed> observe_ranges(Normal program, Calibration* elsewhere, StateContents& contents, const Context& c) {
  Observed seen{std::move(program), {}, {}, 0};
  const Samples& stored = seen.program.stored;
  Graph& graph = seen.program.graph;
  if (!stored.empty()) seen.sample = stored[0];
  if (seen.program.by_pt2e && !c.options.quantise.request.empty()) return already_quantised();
  if (!c.options.in_integers() || seen.program.by_pt2e || !computes_floats(graph)) return seen;
  QuantiseOptions how = how_to_quantise(c.options, *c.exported);
  how.shares_weights |= c.request.several_methods;
  how.norms_as = c.request.norms_as;
  how.rewrite = c.rewrites("quantise");
  how.rewrite("widen_half_precision", graph, widen_half_precision);
  Elsewhere others;
  if (!elsewhere) { TOSAIC_TRY(others, calibrate_elsewhere(graph, c)); }
  if (others.calibration) elsewhere = &*others.calibration;
  if (elsewhere) {
    TOSAIC_TRY(seen.calibration, calibrated_at(*elsewhere, std::move(graph), how, c.callbacks.sink));
    return seen;
  }
  if (stored.empty() && !c.given && !c.request.invent_samples && !c.method->sample_inputs.empty())
    return error("calibrate.no-samples", "the samples that the model holds are of other sizes than the chosen ones")
        .hint("give --calibrate FILE.npz with samples of these sizes, or choose the sizes of those in the model");
  Samples samples = std::move(others.samples);
  if (samples.empty()) { TOSAIC_TRY(samples, samples_for(graph, stored, c)); }
  seen.samples = samples.size();
  if (!samples.empty()) seen.sample = samples[0];
  if (c.callbacks.progress)
    how.progress = [&](std::size_t done, std::size_t total) { c.callbacks.progress("calibrate", done, total); };
  how.cancelled = c.callbacks.cancelled;
  const bool invented = c.request.invent_samples && !c.given && stored.empty();
  const Sink sink = invented ? Sink() : c.callbacks.sink;
  // Those that a program holds were hardly chosen for this.
  if (c.given && !c.request.stored_samples) TOSAIC_CHECK(finite_samples(graph, samples, how.threads));
  const Sink of_samples = hears_of_samples(c);
  if (!c.target.spec.has(tosa::sizes_vary)) say_uniform(graph, samples, of_samples);  // else these are some of them
  if (of_samples) say_unlike_training(graph, trained_norms(*c.exported), samples, how.threads, of_samples);
  TOSAIC_TRY(seen.calibration, calibrate(std::move(graph), samples, how, sink, contents));
  return seen;
}

Result<std::map<std::string, Tensor>> equalised_parameters(const Context& c) {
  if (!input_symbols(*c.exported).empty()) return std::map<std::string, Tensor>();  // all sizes have the same weights
  TOSAIC_TRY(Normal normal, normalise_program(*c.exported, c));
  if (normal.by_pt2e) return already_quantised();
  QuantiseOptions how = how_to_quantise(c.options, *c.exported);
  std::map<std::string, const std::byte*> exported;
  for (const Value& v : c.exported->values)
    if (v.is_constant()) exported.emplace(v.name, v.constant.data());
  how.may_equalise = [&](const Value& parameter) {
    const auto found = exported.find(parameter.name);
    return found != exported.end() && found->second == parameter.constant.data();
  };
  how.cancelled = c.callbacks.cancelled;
  TOSAIC_TRY(const Samples samples, samples_for(normal.graph, normal.stored, c));
  return equalised_constants(std::move(normal.graph), samples, how, c.callbacks.sink);
}

Result<std::optional<Calibration>> calibrate_over_sizes(const Graph& varying, const Samples& samples,
                                                        const Context& c) {
  TOSAIC_TRY(SamplesBySizes all, by_sizes(varying, samples));
  if (all.empty()) {  // which says that there are none
    TOSAIC_TRY(Sizes largest, largest_sizes(input_symbols(varying)));
    all.push_back({largest, {}});
  }
  say_uniform(varying, samples, hears_of_samples(c));
  std::vector<Observed> seen;
  std::vector<Calibration*> calibrations;
  const auto observe = [&](std::shared_ptr<const NormRounds> norms) -> Status {
    seen.clear();
    calibrations.clear();
    StateContents contents;
    for (const auto& [sizes, its] : all) {
      Context at = at_one_size(c, varying, norms || !seen.empty());
      at.given = [&its = its](const Graph&) -> Result<Samples> { return its; };
      at.request.stored_samples = !c.given;
      at.request.norms_as = norms;
      TOSAIC_TRY(Graph program, specialise(varying, sizes));
      auto one = observe_program(std::move(program), nullptr, contents, at);
      if (!one.ok() && one.error().code == "calibrate.not-a-number" && all.size() > 1)
        one.error().notes.emplace_back("counted among the samples of its sizes");
      if (!one.ok()) return std::move(one.error());
      seen.push_back(*std::move(one));
    }
    for (Observed& one : seen)
      if (one.calibration) calibrations.push_back(&*one.calibration);
    return {};
  };
  TOSAIC_CHECK(observe(nullptr));
  if (auto norms = norms_of_all_sizes(calibrations)) TOSAIC_CHECK(observe(std::move(norms)));
  if (calibrations.empty()) return std::optional<Calibration>();
  TOSAIC_CHECK(share_ranges(calibrations));
  return std::optional<Calibration>(std::move(*calibrations[0]));
}

Result<Typed> choose_types(Observed seen, const Context& c) {
  const Normal& program = seen.program;
  Typed typed{std::move(seen.program.graph), program.narrowed, std::move(seen.sample), seen.samples,
              static_cast<bool>(c.given)};
  if (seen.calibration) { TOSAIC_TRY(typed.graph, quantised(*std::move(seen.calibration))); }
  if (c.options.in_integers() || program.by_pt2e) {
    insert_width_changes(typed.graph, io_of(program.by_pt2e, c.options.quantised_io), c.target.spec,
                         c.rewrites("quantise"));
  }
  TOSAIC_CHECK(c.end("quantise", typed.graph));
  return typed;
}

Result<Graph> nominal_types(Graph normal, bool by_pt2e, bool quantised_io, const QuantiseOptions& how,
                            const tosa::Spec& spec) {
  if (!by_pt2e) { TOSAIC_TRY(normal, planned(std::move(normal), how)); }
  insert_width_changes(normal, io_of(by_pt2e, quantised_io), spec, {});
  return normal;
}

}  // namespace tosaic
