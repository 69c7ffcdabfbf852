// SPDX-License-Identifier: Apache-2.0
// The straight line: read -> normalise -> quantise -> partition -> lower -> tidy -> emit -> pack -> self-check.
#include "api/compile.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "api/chosen_sizes.h"
#include "api/self_check.h"
#include "kernels/out_variant.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/op.h"
#include "pack/core_form.h"
#include "pack/pack.h"
#include "quantise/plan.h"
#include "read/samples.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// Names, times and prints the stages as they go by.
class Story {
 public:
  Story(const CompileOptions& options, const CompileCallbacks& callbacks, Compiled& result)
      : options_(options), callbacks_(callbacks), result_(result) {}
  // A graph that the stage made: verified in debug builds, printed when asked for.
  Status note(const std::string& stage, const Graph& graph) {
    if (std::count(options_.print_after.begin(), options_.print_after.end(), stage)) result_.printed += print(graph);
#ifndef NDEBUG
    if (auto bad = verify(graph); !bad.ok()) return internal_error("after " + stage + ": " + bad.error().message);
#endif
    return {};
  }
  Status end(const std::string& stage) {
    auto now = std::chrono::steady_clock::now();
    result_.stage_seconds.emplace_back(stage, std::chrono::duration<double>(now - begin_).count());
    begin_ = now;
    return go_on();
  }
  Status go_on() const {
    if (!callbacks_.cancelled || !callbacks_.cancelled()) return {};
    return error("compile.cancelled", "the compilation was cancelled");
  }
  Status end(const std::string& stage, const Graph& graph) {
    TOSAIC_CHECK(end(stage));
    return note(stage, graph);
  }

 private:
  const CompileOptions& options_;
  const CompileCallbacks& callbacks_;
  Compiled& result_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Placement hardly depends on the scales' values (pieces of unlike ranges may be joined outside the delegate), so
// `explain` may make the samples up.
Samples invented_samples(const Graph& graph) {
  std::mt19937 random(1);
  std::vector<Tensor> sample;
  for (ValueId v : graph.inputs) {
    std::vector<double> values(static_cast<std::size_t>(graph[v].type.shape.elements()));
    for (double& x : values) x = is_float(graph[v].type.dtype) ? random() / 4294967296.0 - 0.5 : 0;
    sample.push_back({graph[v].type, constant_bytes(graph[v].type.dtype, values)});
  }
  return {sample};
}

// Integers need no scales.
bool computes_floats(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const Value& v) { return is_float(v.type.dtype); });
}

// The given ones, else those that the program holds.
Result<Samples> samples_for(const CompileOptions& options, const CompileCallbacks& callbacks, const Graph& graph,
                            const Samples& stored) {
  if (callbacks.samples) return callbacks.samples(graph);
  if (!stored.empty()) {
    auto note =
        warning("calibrate.stored-samples", fmt::format("calibrating with the {} sample input{} stored in the model",
                                                        stored.size(), stored.size() == 1 ? "" : "s"));
    note.severity = Severity::note;
    note.help = "give --calibrate FILE.npz with typical inputs for better accuracy";
    if (callbacks.sink && !options.invent_samples) callbacks.sink(note);
    return stored;
  }
  if (options.invent_samples) return invented_samples(graph);
  return Samples{};
}

// Operators of no library that tosaic knows are called as kernels of the runtime, which may or may not have them.
void warn_of_kernels(const Partition& partition, const Sink& sink) {
  std::set<std::string> said;
  for (const Node& node : partition.outer.nodes) {
    const bool known = node.op == "delegate" || node.op.starts_with("aten.") || find_aten(node.op).op;
    const auto kernel = known ? std::nullopt : kernels::out_variant_by_name(node.op);
    if (!sink || !kernel || !said.insert(node.op).second) continue;
    const std::string name = fmt::format("{}.{}", kernel->name, kernel->overload);
    sink(located(
        warning("pack.unknown-kernel",
                fmt::format("operator {} is not known to tosaic: the program calls the kernel {}", node.op, name))
            .note("arguments that the exported program leaves at their defaults are not passed")
            .hint("run the program with ExecuTorch, linked with that kernel; `tosaic run` does not have it"),
        node.loc));
  }
}

Status fully_delegated(const Partition& partition) {
  for (std::size_t n = 0; n < partition.placements.size(); ++n) {
    const Placement& p = partition.placements[n];
    if (p.region >= 0) continue;
    Diagnostic why = p.reason;
    if (why.code == "target.conversion") continue;
    why.severity = Severity::error;
    why.notes.emplace_back("--require-full-delegation allows no node outside the delegate");
    return why;
  }
  return {};
}

// A program that is written although nobody could say whether it is right.
Diagnostic not_checked(const Diagnostic& why) {
  return warning("self-check.undecided",
                 "the simulator cannot tell what a delegate computes, so it is written unchecked")
      .note(fmt::format("{}: {}", why.code, why.message))
      .hint("compare it on the device, or with another Ethos-U target");
}

// A program that runs on the CPU alone is seldom what the user wanted, and never who gave samples for the delegate.
Status delegated_something(const CompileOptions& options, const Compiled& compiled, bool samples_given,
                           const Sink& sink) {
  const auto& placements = compiled.partition.placements;
  if (!compiled.partition.regions.empty() || placements.empty() || !options.pack) return {};
  const auto why = std::find_if(placements.begin(), placements.end(),
                                [](const Placement& p) { return p.reason.code != "target.conversion"; });
  if (why == placements.end()) return {};
  Diagnostic nothing =
      warning("target.nothing-delegated",
              fmt::format("no node of the program runs on {}: all stay on the CPU", options.target.name));
  nothing.notes.push_back(fmt::format("the first: {}", why->reason.message));
  nothing.notes.insert(nothing.notes.end(), why->reason.notes.begin(), why->reason.notes.end());
  nothing.help = "`tosaic explain` says of each node why";
  nothing.place = why->reason.place;
  nothing.context = why->reason.context;
  if (samples_given) {
    nothing.severity = Severity::error;
    return nothing;
  }
  if (sink) sink(std::move(nothing));
  return {};
}

// The stages, in order; each leaves to the next what the members hold.
class Line {
 public:
  Line(const ExportedProgram& program, const Method& method, const CompileOptions& options,
       const CompileCallbacks& callbacks)
      : program_(program),
        method_(method),
        options_(options),
        callbacks_(callbacks),
        target_(options.target),
        story_(options, callbacks, result_) {
    result_.target = target_;
  }

  Result<Compiled> run() {
    TOSAIC_CHECK(chosen());
    TOSAIC_CHECK(story_.note("read", start_));
    TOSAIC_CHECK(normalised());
    TOSAIC_CHECK(constructs());
    TOSAIC_CHECK(story_.end("normalise", graph_));
    if (integer_) TOSAIC_CHECK(quantised());
    TOSAIC_CHECK(story_.end("quantise", graph_));
    TOSAIC_CHECK(partitioned());
    TOSAIC_CHECK(story_.end("partition", result_.partition.outer));
    TOSAIC_CHECK(lowered());
    TOSAIC_CHECK(story_.end("lower"));
    TOSAIC_CHECK(tidied());
    TOSAIC_CHECK(story_.end("tidy"));
    if (options_.pack) TOSAIC_CHECK(emitted());
    TOSAIC_CHECK(story_.end("emit"));
    if (!options_.pack) return std::move(result_);
    TOSAIC_CHECK(packed());
    TOSAIC_CHECK(story_.end("pack"));
    if (options_.self_check && target_.self_check && !result_.emitted.empty()) TOSAIC_CHECK(checked());
    return std::move(result_);
  }

 private:
  Status chosen() {
    TOSAIC_TRY(start_, at_chosen_sizes(method_.graph, options_.sizes));
    stored_ = fitting(start_, method_.sample_inputs);
    if (!stored_.empty()) sample_ = stored_[0];
    return {};
  }

  // What nobody can write yet may still be asked about.
  Status constructs() {
    Status found = runs_as_it_stands(graph_);
    if (found.ok() || options_.pack) return found;
    Diagnostic why = std::move(found.error());
    why.severity = Severity::warning;
    if (callbacks_.sink) callbacks_.sink(std::move(why));
    return {};
  }

  // What a program's own conversions made integers stays so wherever the target has any.
  Status normalised() {
    const bool has_integers = target_.spec.has(tosa::Feature::pro_int);
    TOSAIC_TRY(graph_, normalise(std::move(start_),
                                 {.fold_quantisation = options_.in_integers() || has_integers, .narrowed = &narrowed_},
                                 callbacks_.sink));
    integer_ = options_.in_integers() || is_quantised(graph_);
    return {};
  }

  Status quantised() {
    const bool by_pt2e = is_quantised(graph_);
    if (by_pt2e && !options_.quantise.request.empty()) return already_quantised();
    if (!by_pt2e && computes_floats(graph_)) {
      widen_halves(graph_);
      if (stored_.empty() && !callbacks_.samples && !options_.invent_samples && !method_.sample_inputs.empty())
        return error("calibrate.no-samples", "the samples that the model holds are of other sizes than the chosen ones")
            .hint("give --calibrate FILE.npz with samples of these sizes, or choose the sizes of those in the model");
      TOSAIC_TRY(const Samples samples, samples_for(options_, callbacks_, graph_, stored_));
      result_.samples = samples.size();
      if (!samples.empty()) sample_ = samples[0];
      QuantiseOptions how = how_to_quantise(options_, method_);
      if (callbacks_.progress)
        how.progress = [&](std::size_t done, std::size_t total) { callbacks_.progress("calibrate", done, total); };
      how.cancelled = callbacks_.cancelled;
      const bool invented = options_.invent_samples && !callbacks_.samples && stored_.empty();
      TOSAIC_TRY(graph_, quantise(std::move(graph_), samples, how, invented ? Sink() : callbacks_.sink));
    }
    insert_boundaries(graph_, options_.quantised_io ? Io::codes : by_pt2e ? Io::as_written : Io::floats);
    return {};
  }

  Status partitioned() {
    if (options_.single_delegate) compute_outputs(graph_);
    result_.quantised = std::move(graph_);
    if (options_.single_delegate) {
      TOSAIC_TRY(result_.partition, whole(result_.quantised, target_.spec));
    } else {
      result_.partition = partition(result_.quantised, target_.spec);
    }
    TOSAIC_TRY(const Deciding decided, deciding(options_.quantise.request.overrides, exported_nodes(method_.graph)));
    say_decided(result_.quantised, decided, target_.spec, result_.partition.placements);
    result_.verdicts = verdicts(exported_nodes(method_.graph), result_.quantised, result_.partition.placements);
    for (const Placement& p : result_.partition.placements)
      if (p.region < 0 && p.reason.code == inconsistent_model) return p.reason;
    widen_outside(result_.partition.outer, narrowed_);
    if (options_.require_full_delegation) TOSAIC_CHECK(fully_delegated(result_.partition));
    return delegated_something(options_, result_, static_cast<bool>(callbacks_.samples), callbacks_.sink);
  }

  Status lowered() {
    for (const Graph& region : result_.partition.regions) {
      TOSAIC_TRY(Lowered lowered, lower(region, {.spec = &target_.spec}));
      result_.lowered.push_back(std::move(lowered.graph));
    }
    for (const Graph& region : result_.lowered) TOSAIC_CHECK(story_.note("lower", region));
    return {};
  }

  Status tidied() {
    for (Graph& region : result_.lowered) {
      tidy(region, {.keep_activations = target_.spec.product != nullptr});
      if (target_.shape) target_.shape(region);
      TOSAIC_CHECK(tosa::verify_graph(region, target_.spec));
      TOSAIC_CHECK(story_.note("tidy", region));
    }
    return {};
  }

  Status emitted() {
    for (const Graph& region : result_.lowered) {
      const std::string number = result_.lowered.size() > 1 ? fmt::format("_{}", result_.emitted.size()) : "";
      TOSAIC_TRY(Emitted made, target_.emit(region, target_, options_.emit, number));
      for (const Diagnostic& note : made.notes)
        if (callbacks_.sink && result_.emitted.empty()) callbacks_.sink(note);
      result_.emitted.push_back(std::move(made));
    }
    return {};
  }

  Status packed() {
    warn_of_kernels(result_.partition, callbacks_.sink);
    std::vector<Bytes> payloads;
    for (const Emitted& e : result_.emitted) payloads.push_back(e.payload);
    TOSAIC_TRY(result_.program,
               pack(result_.partition.outer, payloads, target_.delegate_id,
                    {program_.input_spec, program_.output_spec, method_.fixed_inputs, method_.fixed_outputs},
                    callbacks_.sink));
    return {};
  }

  Status checked() {
    TOSAIC_TRY(const SelfChecked found, self_check(result_, sample_, options_.quantise.threads));
    TOSAIC_CHECK(story_.end("self-check"));
    for (const Diagnostic& why : found.undecided)
      if (callbacks_.sink) callbacks_.sink(not_checked(why));
    if (found.delegates == result_.emitted.size()) result_.self_check_seconds = result_.stage_seconds.back().second;
    return {};
  }

  const ExportedProgram& program_;
  const Method& method_;
  const CompileOptions& options_;
  const CompileCallbacks& callbacks_;
  const Target& target_;
  bool integer_ = false;
  Compiled result_;
  Story story_;
  Graph start_;                        // the program, its sizes numbers
  Samples stored_;                     // that it holds, of these sizes
  Graph graph_;                        // until it is partitioned
  std::vector<std::string> narrowed_;  // values that were int64 in the program
  std::vector<Tensor> sample_;         // for the self-check
};

}  // namespace

QuantiseOptions how_to_quantise(const CompileOptions& options, const Method& method) {
  QuantiseOptions how = options.quantise;
  how.wide_inside = options.target.spec.has(tosa::Feature::int16);
  how.float_outputs = !options.quantised_io && !options.require_full_delegation;
  how.exported = exported_nodes(method.graph);
  how.spec = options.target.spec;
  return how;
}

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks) {
  TOSAIC_TRY(const Method* method, only_method(program));
  return Line(program, *method, options, callbacks).run();
}

}  // namespace tosaic
