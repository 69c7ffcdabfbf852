// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tuned.h"

#include <fmt/format.h>
#include <algorithm>

#include "compare/rounding_noise.h"
#include "pipeline/budget_search.h"
#include "pipeline/compared.h"
#include "pipeline/settle.h"
#include "pipeline/trials.h"
#include "pipeline/widening_order.h"

namespace tosaic {
namespace {

// Can there be something to choose?
Status tunable(const CompileOptions& options) {
  if (options.quantise.scheme != Scheme::int8)
    return error("tune.scheme", "all activations have 16 bits already").hint("leave out --quantize int16x8");
  if (options.target.spec.has(tosa::Feature::int16)) return {};
  return error("tune.no-int16", fmt::format("{} has no 16-bit activations", options.target.name))
      .hint("choose a target that has them: tosa-int, vgf or an Ethos-U");
}

std::vector<std::string> nodes_of(const Tuning& tuning, const std::vector<std::size_t>& tensors) {
  std::vector<std::string> nodes;
  for (std::size_t i : tensors) nodes.insert(nodes.end(), tuning.order[i].nodes.begin(), tuning.order[i].nodes.end());
  return nodes;
}

CompileOptions with_wide(CompileOptions options, const std::vector<std::string>& nodes) {
  std::vector<Override> ours;
  for (const std::string& node : nodes) ours.push_back({node, Form::int16x8, {"the budget", 0, ""}});
  std::vector<Override>& overrides = options.quantise.request.overrides;
  overrides.insert(overrides.begin(), ours.begin(), ours.end());
  return options;
}

MeasuredSet measured(const TrialRun& trial) {
  MeasuredSet set{trial.db, trial.cost};
  if (trial.right) set.top1 = trial.right->percent();
  return set;
}

}  // namespace

CompileOptions widened(CompileOptions options, const Tuning& tuning) {
  return with_wide(std::move(options), nodes_of(tuning, tuning.points[tuning.chosen].tensors));
}

Diagnostic told(const Tuning& tuning, const Budget& budget) {
  const TunedPoint& chosen = tuning.points[tuning.chosen];
  const std::string right = chosen.top1 ? fmt::format("{:.2f} % right, ", *chosen.top1) : "";
  const std::string has =
      fmt::format("{}{:.1f} dB, at {:.3f} times int8's {}", right, chosen.db, chosen.ratio, tuning.unit);
  if (!tuning.met)
    return warning("tune.missed", fmt::format("no plan meets '{}': this one comes nearest", budget.text))
        .note("it has " + has)
        .hint("ask for less, or keep layers in floats with --override 'NAME: float'");
  Diagnostic note =
      warning("tune.chosen", fmt::format("'{}' is met with {} calls in 16 bits: {}", budget.text, chosen.calls, has));
  note.severity = Severity::note;
  return note;
}

Result<Tuning> tune_model(const ExportedProgram& program, const CompileOptions& given, const CompileCallbacks& heard,
                          const ShownSamples& shown, const std::optional<Budget>& asked) {
  std::optional<Budget> budget = asked;
  if (budget && budget->least_top1 && shown.labels.empty())
    return error("tune.labels", fmt::format("'{}' counts right answers, and no labels say which are", budget->text))
        .hint("`tosaic tune --evaluate FILE.npz` takes samples with labels, in Python samples=... and labels=...");
  TOSAIC_CHECK(comparable(program, given));
  TOSAIC_CHECK(tunable(given));
  TOSAIC_TRY(const Settled settled, settle_effort(program, given, heard));
  const CompileOptions& options = settled.options;
  const CompileCallbacks& callbacks = settled.callbacks;
  Tuning tuning{.target = options.target.name, .unit = options.target.estimates ? "cycles" : "bytes"};
  if (budget && !budget->unit.empty() && budget->unit != tuning.unit) {
    if (budget->unit != "bytes")
      return error("tune.unit", fmt::format("nobody estimates {} for {}", budget->unit, tuning.target))
          .hint("--budget 'bytes<=1.1x': of activations that calls read and write");
    tuning.unit = budget->unit;
  }
  Trials trials(program, callbacks, shown, tuning.unit == "cycles");
  TOSAIC_TRY(const TrialRun int8, trials.run(options));
  TOSAIC_TRY(const std::vector<RoundingNoise> noises,
             find_rounding_noise(int8.floats, int8.split.quantised, trials.samples(),
                                 {.threads = options.quantise.threads, .cancelled = callbacks.cancelled}));
  tuning.program = fingerprint(exported_nodes(program.methods[0].graph));
  tuning.samples = trials.samples().size();
  if (int8.right) tuning.top1_of_floats = int8.right->percent_in_floats();
  if (budget && budget->below_floats) *budget->least_top1 = *tuning.top1_of_floats - *budget->least_top1;
  tuning.order =
      widening_order(int8.split.quantised, noises, exported_nodes(program.methods[0].graph), {int8.cost_of, int8.cost});
  std::size_t done = 0;
  const MeasureSet measure = [&](const std::vector<std::size_t>& wide) -> Result<MeasuredSet> {
    if (callbacks.cancelled && callbacks.cancelled()) return error("compile.cancelled", "the search was cancelled");
    TOSAIC_TRY(const TrialRun trial, trials.run(with_wide(options, nodes_of(tuning, wide))));
    ++done;  // how many it will be is not known, but seldom more than there are tensors
    if (callbacks.progress) callbacks.progress("tune", done, std::max(done, tuning.order.size()));
    return measured(trial);
  };
  TOSAIC_TRY(tuning.points, search_budget(tuning.order, measured(int8), budget, measure));
  tuning.chosen = choose_point(tuning.points, budget);
  tuning.met = meets(tuning.points[tuning.chosen], budget);
  return tuning;
}

}  // namespace tosaic
