// SPDX-License-Identifier: Apache-2.0
#include "pipeline/trials.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "pipeline/compared.h"
#include "pipeline/methods.h"
#include "pipeline/steps.h"

namespace tosaic {
namespace {

constexpr std::size_t most_samples = 16;  // each of which every trial runs

void add_bytes(const Graph& graph, TrialRun& to) {
  for (const Node& node : graph.nodes) {
    double bytes = 0;
    for (const auto& ends : {node.inputs, node.outputs})
      for (ValueId v : ends)
        if (v != no_value && !graph[v].is_constant()) bytes += static_cast<double>(graph[v].type.storage_bytes());
    to.cost += bytes;
    if (node.loc) to.cost_of[node.loc->name] += bytes;
  }
}

void add_cycles(const std::vector<Emitted>& emitted, TrialRun& to) {
  for (const Emitted& one : emitted) {
    if (!one.estimate) continue;
    to.cost += one.estimate->cycles;
    for (const NpuLayer& layer : one.estimate->layers) {
      std::istringstream names(layer.node);  // several, where they became one
      for (std::string name; names >> name;) to.cost_of[name] += layer.cycles;
    }
  }
}

}  // namespace

Trials::Trials(const ExportedProgram& program, const CompileCallbacks& callbacks, const ShownSamples& shown,
               bool estimated)
    : method_(program.methods[0]),
      callbacks_(callbacks),
      given_(samples_given(method_, callbacks)),
      shown_(shown),
      estimated_(estimated) {}

// A source can be read once, and each trial is calibrated.
SamplesFor Trials::calibration() {
  if (!given_) return given_;
  if (tried_ == 1) return keeping(given_, kept_);
  return [kept = kept_](const Graph&) -> Result<Samples> { return *kept; };
}

Result<TrialRun> Trials::run(const CompileOptions& options) {
  CompileCallbacks callbacks = callbacks_;
  callbacks.progress = {};
  if (tried_++ > 0) callbacks.sink = [](const Diagnostic&) {};
  StateContents contents;
  TOSAIC_TRY(Begun begun, begin_method({method_, options, callbacks, calibration(), {.pack = estimated_}}, contents));
  const Context& c = begun.context;
  TOSAIC_TRY(Observed seen, at_numbers(std::move(begun.program)));
  TOSAIC_CHECK(has_floats(seen));
  TrialRun trial{{}, float_program(*seen.calibration)};
  if (!samples_) {
    const Samples& calibrated = c.given ? *kept_ : seen.program.stored;
    TOSAIC_TRY(samples_,
               samples_to_compare(trial.floats.graph, shown_.samples, calibrated, most_samples, Taken::all_over));
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
  how.labels = shown_.labels;
  TOSAIC_TRY(const Comparison found, compare_programs(trial.floats, trial.split.quantised, *samples_, how));
  trial.right = found.right;
  trial.db = INFINITY;
  for (const ComparedOutput& output : found.outputs) trial.db = std::min(trial.db, output.error.db);
  return trial;
}

}  // namespace tosaic
