// SPDX-License-Identifier: Apache-2.0
// The straight line: read -> normalise -> quantise -> partition -> lower -> tidy -> emit -> pack -> self-check.
#include "api/compile.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <random>
#include <set>

#include "api/self_check.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/op.h"
#include "read/samples.h"
#include "runtime/core_form.h"
#include "runtime/out_variant.h"
#include "runtime/pack.h"
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
    const auto kernel = known ? std::nullopt : runtime::out_variant_by_name(node.op);
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

}  // namespace

Result<Compiled> compile_model(const ExportedProgram& program, const std::string& name, const CompileOptions& options,
                               const CompileCallbacks& callbacks) {
  Compiled result;
  Story story(options, callbacks, result);
  const Sink& sink = callbacks.sink;
  const Target& target = options.target;
  result.target = target;
  if (program.methods.size() != 1)
    return error("model.methods", fmt::format("the archive holds {} models, one is expected", program.methods.size()))
        .at({name, 0, ""});
  const Method& method = program.methods[0];
  TOSAIC_CHECK(story.note("read", method.graph));

  // Integer scales mean something to integer targets only; others keep PT2E's conversions as arithmetic.
  const bool integer = target.integer() || options.quantise_always;
  std::vector<Tensor> sample;  // for the self-check
  if (!method.sample_inputs.empty()) sample = method.sample_inputs[0];
  std::vector<std::string> narrowed;
  TOSAIC_TRY(Graph graph, normalise(Graph(method.graph), {.fold_quantisation = integer, .narrowed = &narrowed}, sink));
  TOSAIC_CHECK(story.end("normalise", graph));

  bool samples_given = static_cast<bool>(callbacks.samples);
  if (integer) {
    const bool by_pt2e = is_quantised(graph);
    if (!by_pt2e) {
      widen_halves(graph);
      TOSAIC_TRY(Samples samples, samples_for(options, callbacks, graph, method.sample_inputs));
      result.samples = samples.size();
      if (!samples.empty()) sample = samples[0];
      QuantiseOptions how = options.quantise;
      how.wide_inside = target.spec.has(tosa::Feature::int16);
      how.float_outputs = !options.quantised_io && !options.require_full_delegation;
      if (callbacks.progress)
        how.progress = [&](std::size_t done, std::size_t total) { callbacks.progress("calibrate", done, total); };
      how.cancelled = callbacks.cancelled;
      const bool invented = options.invent_samples && !samples_given && method.sample_inputs.empty();
      TOSAIC_TRY(graph, quantise(std::move(graph), samples, how, invented ? Sink() : sink));
    }
    insert_boundaries(graph, options.quantised_io ? Io::codes : by_pt2e ? Io::as_written : Io::floats);
  }
  TOSAIC_CHECK(story.end("quantise", graph));

  result.quantised = std::move(graph);
  result.partition = partition(result.quantised, target.spec);
  for (const Placement& p : result.partition.placements)
    if (p.region < 0 && p.reason.code == inconsistent_model) return p.reason;
  widen_outside(result.partition.outer, narrowed);
  if (options.require_full_delegation) TOSAIC_CHECK(fully_delegated(result.partition));
  TOSAIC_CHECK(delegated_something(options, result, samples_given, sink));
  TOSAIC_CHECK(story.end("partition", result.partition.outer));

  for (const Graph& region : result.partition.regions) {
    TOSAIC_TRY(Lowered lowered, lower(region, {.spec = &target.spec}));
    result.lowered.push_back(std::move(lowered.graph));
  }
  for (const Graph& region : result.lowered) TOSAIC_CHECK(story.note("lower", region));
  TOSAIC_CHECK(story.end("lower"));

  for (Graph& region : result.lowered) {
    tidy(region, {.keep_activations = target.spec.product != nullptr});
    if (target.shape) target.shape(region);
    TOSAIC_CHECK(tosa::verify_graph(region, target.spec));
    TOSAIC_CHECK(story.note("tidy", region));
  }
  TOSAIC_CHECK(story.end("tidy"));

  for (const Graph& region : result.lowered) {
    if (!options.pack) break;
    const std::string number = result.lowered.size() > 1 ? fmt::format("_{}", result.emitted.size()) : "";
    TOSAIC_TRY(Emitted emitted, target.emit(region, target, options.emit, number));
    result.emitted.push_back(std::move(emitted));
  }
  TOSAIC_CHECK(story.end("emit"));

  if (options.pack) {
    warn_of_kernels(result.partition, sink);
    std::vector<Bytes> payloads;
    for (const Emitted& e : result.emitted) payloads.push_back(e.payload);
    TOSAIC_TRY(result.program,
               pack(result.partition.outer, payloads, target.delegate_id,
                    {program.input_spec, program.output_spec, method.fixed_inputs, method.fixed_outputs}, sink));
    TOSAIC_CHECK(story.end("pack"));
  }
  if (options.pack && options.self_check && target.self_check && !result.emitted.empty()) {
    TOSAIC_TRY(const SelfChecked checked, self_check(result, sample, options.quantise.threads));
    TOSAIC_CHECK(story.end("self-check"));
    for (const Diagnostic& why : checked.undecided)
      if (sink) sink(not_checked(why));
    if (checked.delegates == result.emitted.size()) result.self_check_seconds = result.stage_seconds.back().second;
  }
  return result;
}

}  // namespace tosaic
