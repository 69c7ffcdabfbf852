// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tuned.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "compare/rounding_noise.h"
#include "pipeline/budget_search.h"
#include "pipeline/compared.h"
#include "pipeline/methods.h"
#include "pipeline/steps.h"
#include "pipeline/widening_order.h"

namespace tosaic {
namespace {

constexpr std::size_t most_samples = 16;  // each of which every trial runs

// The program in int8 but for some calls.
struct Trial {
  Split split;
  FloatProgram floats;
  double db = 0, cost = 0;
  std::map<std::string, double> cost_of;  // by exported node
};

void add_bytes(const Graph& graph, Trial& to) {
  for (const Node& node : graph.nodes) {
    double bytes = 0;
    for (const auto& ends : {node.inputs, node.outputs})
      for (ValueId v : ends)
        if (v != no_value && !graph[v].is_constant()) bytes += static_cast<double>(graph[v].type.storage_bytes());
    to.cost += bytes;
    if (node.loc) to.cost_of[node.loc->name] += bytes;
  }
}

void add_cycles(const std::vector<Emitted>& emitted, Trial& to) {
  for (const Emitted& one : emitted) {
    if (!one.estimate) continue;
    to.cost += one.estimate->cycles;
    for (const NpuLayer& layer : one.estimate->layers) {
      std::istringstream names(layer.node);  // several, where they became one
      for (std::string name; names >> name;) to.cost_of[name] += layer.cycles;
    }
  }
}

class Trials {
 public:
  Trials(const ExportedProgram& program, const CompileOptions& options, const CompileCallbacks& callbacks,
         const SamplesFor& shown, bool estimated)
      : method_(program.methods[0]),
        options_(options),
        callbacks_(callbacks),
        given_(samples_given(method_, callbacks)),
        shown_(shown),
        estimated_(estimated) {}

  // With these nodes in 16 bits. What the user decides wins.
  Result<Trial> run(const std::vector<std::string>& wide) {
    CompileOptions options = options_;
    std::vector<Override> ours;
    for (const std::string& node : wide) ours.push_back({node, Form::int16x8, {"the budget", 0, ""}});
    std::vector<Override>& overrides = options.quantise.request.overrides;
    overrides.insert(overrides.begin(), ours.begin(), ours.end());
    CompileCallbacks callbacks = callbacks_;
    callbacks.progress = {};
    if (tried_++ > 0) callbacks.sink = [](const Diagnostic&) {};  // what is to be said was said of the first
    StateContents contents;
    TOSAIC_TRY(Begun begun, begin_method({method_, options, callbacks, calibration(), {.pack = estimated_}}, contents));
    const Context& c = begun.context;
    TOSAIC_TRY(Observed seen, at_numbers(std::move(begun.program)));
    TOSAIC_CHECK(has_floats(seen));
    Trial trial{{}, float_program(*seen.calibration)};
    if (!samples_) {
      const Samples& calibrated = c.given ? *kept_ : seen.program.stored;
      TOSAIC_TRY(samples_, samples_to_compare(trial.floats.graph, shown_, calibrated, most_samples, Taken::all_over));
    }
    TOSAIC_TRY(Typed typed, choose_types(std::move(seen), c));
    if (estimated_) {
      TOSAIC_TRY(Tosa tosa, make_tosa(std::move(typed), c));
      TOSAIC_TRY(Compiled made, emit_delegates(std::move(tosa), c));
      if (!made.faults.empty()) return std::move(made.faults[0].why);
      add_cycles(made.emitted, trial);
      trial.split = std::move(made);
    } else {
      TOSAIC_TRY(trial.split, split_by_target(std::move(typed), c));
      add_bytes(trial.split.quantised, trial);
    }
    CompareHow how = compare_how(trial.split, c);
    how.outputs_only = true;
    TOSAIC_TRY(const Comparison found, compare_programs(trial.floats, trial.split.quantised, *samples_, how));
    trial.db = INFINITY;
    for (const ComparedOutput& output : found.outputs) trial.db = std::min(trial.db, output.error.db);
    return trial;
  }

  const Samples& samples() const { return *samples_; }

 private:
  // A source can be read once, and each trial is calibrated.
  SamplesFor calibration() {
    if (!given_) return given_;
    if (tried_ == 1) return keeping(given_, kept_);
    return [kept = kept_](const Graph&) -> Result<Samples> { return *kept; };
  }

  const Method& method_;
  const CompileOptions& options_;
  const CompileCallbacks& callbacks_;
  const SamplesFor given_, shown_;
  const bool estimated_;
  const std::shared_ptr<Samples> kept_ = std::make_shared<Samples>();
  std::optional<Samples> samples_;
  std::size_t tried_ = 0;
};

// Can there be something to choose?
Status tunable(const CompileOptions& options) {
  if (options.quantise.scheme != Scheme::int8)
    return error("tune.scheme", "all activations have 16 bits already").hint("leave out --quantize int16x8");
  if (options.target.spec.has(tosa::Feature::int16)) return {};
  return error("tune.no-int16", fmt::format("{} has no 16-bit activations", options.target.name))
      .hint("choose a target that has them: tosa-int, vgf or an Ethos-U");
}

}  // namespace

Result<Tuning> tune_model(const ExportedProgram& program, const CompileOptions& options,
                          const CompileCallbacks& callbacks, const SamplesFor& shown,
                          const std::optional<Budget>& budget) {
  TOSAIC_CHECK(comparable(program, options));
  TOSAIC_CHECK(tunable(options));
  Tuning tuning{.target = options.target.name, .unit = options.target.estimates ? "cycles" : "bytes"};
  if (budget && !budget->unit.empty() && budget->unit != tuning.unit) {
    if (budget->unit != "bytes")
      return error("tune.unit", fmt::format("nobody estimates {} for {}", budget->unit, tuning.target))
          .hint("--budget 'bytes<=1.1x': of activations that calls read and write");
    tuning.unit = budget->unit;
  }
  Trials trials(program, options, callbacks, shown, tuning.unit == "cycles");
  TOSAIC_TRY(const Trial int8, trials.run({}));
  TOSAIC_TRY(const std::vector<RoundingNoise> noises,
             find_rounding_noise(int8.floats, int8.split.quantised, trials.samples(),
                                 {.threads = options.quantise.threads, .cancelled = callbacks.cancelled}));
  tuning.samples = trials.samples().size();
  tuning.order =
      widening_order(int8.split.quantised, noises, exported_nodes(program.methods[0].graph), {int8.cost_of, int8.cost});
  std::size_t done = 0;
  const MeasureSet measure = [&](const std::vector<std::size_t>& wide) -> Result<MeasuredSet> {
    if (callbacks.cancelled && callbacks.cancelled()) return error("compile.cancelled", "the search was cancelled");
    std::vector<std::string> nodes;
    for (std::size_t i : wide) nodes.insert(nodes.end(), tuning.order[i].nodes.begin(), tuning.order[i].nodes.end());
    TOSAIC_TRY(const Trial trial, trials.run(nodes));
    ++done;  // how many it will be is not known, but seldom more than there are tensors
    if (callbacks.progress) callbacks.progress("tune", done, std::max(done, tuning.order.size()));
    return MeasuredSet{trial.db, trial.cost};
  };
  TOSAIC_TRY(tuning.points, search_budget(tuning.order, {int8.db, int8.cost}, budget, measure));
  tuning.chosen = choose_point(tuning.points, budget);
  tuning.met = meets(tuning.points[tuning.chosen], budget);
  return tuning;
}

}  // namespace tosaic
