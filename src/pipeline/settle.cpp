// SPDX-License-Identifier: Apache-2.0
#include "pipeline/settle.h"

#include <fmt/format.h>
#include <cmath>

#include "pipeline/compared.h"
#include "pipeline/methods.h"
#include "pipeline/trials.h"
#include "pipeline/tuned.h"

namespace tosaic {
namespace {

constexpr std::size_t fewest_samples = 4;  // of which halves can say something
constexpr double least_gain = 0.1;         // dB: less may be chance

// What may be chosen where the user does not say it.
struct Alternative {
  std::string_view option, value;
  void (*take)(QuantiseOptions& to);
};
constexpr Alternative alternatives[] = {
    {"observer", "minmax", [](QuantiseOptions& to) { to.observer = Observer::minmax; }},
    {"rounding", "least-squares", [](QuantiseOptions& to) { to.rounding = Rounding::least_squares; }}};

SamplesFor the_same(Samples samples) {
  return [samples = std::move(samples)](const Graph&) -> Result<Samples> { return samples; };
}

// A source can be read once, and each trial is calibrated. Nothing is given: those that the program holds stay there.
Result<CompileCallbacks> readable_again(const Method& method, const CompileCallbacks& callbacks) {
  CompileCallbacks again = callbacks;
  const SamplesFor given = samples_given(method, callbacks);
  if (!given) return again;
  TOSAIC_TRY(Samples samples, given(method.graph));
  again.samples[method.name] = the_same(std::move(samples));
  return again;
}

// Every second sample; of a program with states, whose samples follow each other, those of one end.
std::pair<Samples, Samples> in_halves(Samples all, bool in_order) {
  std::pair<Samples, Samples> halves;
  for (std::size_t s = 0; s < all.size(); ++s) {
    const bool second = in_order ? s >= all.size() / 2 : s % 2 == 1;
    (second ? halves.second : halves.first).push_back(std::move(all[s]));
  }
  return halves;
}

// Calibrated with one half, measured on the other, and the other way round.
class Halves {
 public:
  Halves(const ExportedProgram& program, const CompileCallbacks& callbacks, std::pair<Samples, Samples> halves)
      : first_{the_same(std::move(halves.first)), {}},
        second_{the_same(std::move(halves.second)), {}},
        on_first_(silent(program, callbacks, first_.samples)),
        on_second_(silent(program, callbacks, second_.samples)),
        there_(program, on_first_, second_, false),
        back_(program, on_second_, first_, false) {}

  // Signal to noise over both, in dB.
  Result<double> measure(const CompileOptions& options) {
    TOSAIC_TRY(const TrialRun there, there_.run(options));
    TOSAIC_TRY(const TrialRun back, back_.run(options));
    return -10 * std::log10((std::pow(10, -there.db / 10) + std::pow(10, -back.db / 10)) / 2);
  }

 private:
  static CompileCallbacks silent(const ExportedProgram& program, const CompileCallbacks& callbacks,
                                 const SamplesFor& half) {
    CompileCallbacks own;
    own.sink = [](const Diagnostic&) {};
    own.samples[program.methods[0].name] = half;
    own.cancelled = callbacks.cancelled;
    return own;
  }

  const ShownSamples first_, second_;
  const CompileCallbacks on_first_, on_second_;
  Trials there_, back_;
};

// The options with each alternative that gains something. Error: nothing can be measured.
Result<CompileOptions> with_what_gains(CompileOptions options, Halves& halves, const CompileCallbacks& callbacks) {
  TOSAIC_TRY(double best, halves.measure(options));
  for (const Alternative& other : alternatives) {
    if (options.said.has(other.option)) continue;
    CompileOptions changed = options;
    other.take(changed.quantise);
    TOSAIC_TRY(const double found, halves.measure(changed));
    if (!(found - best >= least_gain)) continue;  // where both are exact, there is no difference
    Diagnostic note = warning("calibrate.chosen",
                              fmt::format("chosen by trial: --{} {}. Results for samples that were not calibrated with "
                                          "are {:.1f} dB nearer to the floats",
                                          other.option, other.value, found - best));
    note.severity = Severity::note;
    if (callbacks.sink) callbacks.sink(std::move(note));
    best = found;
    options = std::move(changed);
  }
  return options;
}

}  // namespace

bool is_open(const CompileOptions& options) { return options.effort == Effort::best || options.budget; }

Result<Settled> settle_effort(const ExportedProgram& program, const CompileOptions& options,
                              const CompileCallbacks& callbacks) {
  Settled settled{options, callbacks};
  settled.options.effort = Effort::usual;
  if (options.effort != Effort::best || !comparable(program, options).ok()) return settled;
  const Method& method = program.methods[0];
  TOSAIC_TRY(settled.callbacks, readable_again(method, callbacks));
  const SamplesFor given = samples_given(method, settled.callbacks);
  if (!given) return settled;
  TOSAIC_TRY(Samples all, given(method.graph));
  if (all.size() < fewest_samples) return settled;
  Halves halves(program, callbacks, in_halves(std::move(all), !method.graph.states.empty()));
  auto chosen = with_what_gains(settled.options, halves, callbacks);
  if (chosen.ok())
    settled.options = *std::move(chosen);
  else if (chosen.error().code == "compile.cancelled")
    return std::move(chosen).error();
  return settled;  // why else nothing could be measured is said when the program is compiled
}

Status answerable(const CompileOptions& options) {
  if (!options.budget) return {};
  return error("option.budget", "which calls a budget widens is found on samples, and nothing is calibrated here")
      .hint("`tosaic tune -o FILE` finds them; give its plan: --plan FILE");
}

Result<Settled> settle(const ExportedProgram& program, const CompileOptions& options,
                       const CompileCallbacks& callbacks) {
  TOSAIC_TRY(Settled settled, settle_effort(program, options, callbacks));
  if (!options.budget) return settled;
  TOSAIC_CHECK(comparable(program, options));
  TOSAIC_TRY(settled.callbacks, readable_again(program.methods[0], settled.callbacks));
  TOSAIC_TRY(const Tuning tuning, tune_model(program, settled.options, settled.callbacks, {}, options.budget));
  if (callbacks.sink) callbacks.sink(told(tuning, *options.budget));
  settled.options = widened(std::move(settled.options), tuning);
  settled.options.budget.reset();
  return settled;
}

}  // namespace tosaic
