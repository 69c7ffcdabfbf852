// SPDX-License-Identifier: Apache-2.0
// The straight line: read -> normalise -> quantise -> partition -> lower -> tidy -> emit -> pack -> self-check. Each
// step takes a value and gives the next (stages.h); what else it may look at is the context.
#include "pipeline/pipeline.h"

#include <chrono>

#include "base/system/clock.h"
#include "pipeline/board.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/compared.h"
#include "pipeline/methods.h"
#include "pipeline/samples.h"
#include "pipeline/settle.h"
#include "pipeline/steps.h"

namespace tosaic {

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks, const Request& request) {
  if (request.invent_samples) TOSAIC_CHECK(answerable(options));
  if (is_open(options) && !request.invent_samples) {
    const auto began = SteadyClock::now();
    TOSAIC_TRY(const Settled how, settle(program, options, callbacks));
    const std::chrono::duration<double> trials = SteadyClock::now() - began;
    TOSAIC_TRY(Compiled made, compile_model(program, how.options, how.callbacks, request));
    made.stage_seconds.insert(made.stage_seconds.begin(), {"trials", trials.count()});
    return made;
  }
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options));
  if (methods.size() > 1) return compile_methods(methods, options, callbacks, request);
  const Method& method = program.methods[0];
  return compile_method({method, options, callbacks, samples_given(method, callbacks), request});
}

Result<Compiled> compile_method(Context c) {
  StateContents contents;
  TOSAIC_TRY(Begun method, begin_method(std::move(c), contents));
  return finish_method(std::move(method));
}

Result<Begun> begin_method(Context c, StateContents& contents) {
  if (c.request.pack && c.target.ready) TOSAIC_CHECK(c.target.ready(c.target, c.options.emit));
  TOSAIC_TRY(Graph program, at_sizes_for(c.options.target, *c.exported, c.options.sizes));
  c.target.spec = spec_for(program, c.options, c.callbacks.sink);
  TOSAIC_CHECK(round_weights(program, c));
  if (!input_symbols(program).empty()) return Begun{std::move(c), std::move(program)};
  TOSAIC_TRY(Observed seen, observe_program(std::move(program), nullptr, contents, c));
  return Begun{std::move(c), std::move(seen)};
}

Result<Observed> observe_program(Graph program, Calibration* elsewhere, StateContents& contents, const Context& c) {
  TOSAIC_TRY(Normal normal, normalise_program(std::move(program), c));
  say_unused(normal, c);
  TOSAIC_TRY(Observed seen, observe_ranges(std::move(normal), elsewhere, contents, c));
  TOSAIC_CHECK(c.end("quantise"));
  return seen;
}

Result<Compiled> finish_method(Begun method) {
  const Context& c = method.context;
  c.go_on();
  Graph* const varying = std::get_if<Graph>(&method.program);
  Compiled made;
  if (varying) {
    TOSAIC_TRY(made, compile_over_sizes(std::move(*varying), c));
  } else {
    TOSAIC_TRY(Typed typed, choose_types(std::get<Observed>(std::move(method.program)), c));
    const bool tried = c.request.pack && c.target.self_check;
    TOSAIC_TRY(made, tried ? compile_until_right(std::move(typed), c) : compile_once(std::move(typed), c));
  }
  if (c.report) {
    made.printed = c.report->text();
    TOSAIC_CHECK(c.report->written());
  }
  made.stage_seconds = std::move(c.trace->stage_seconds);
  return made;
}

Result<Compiled> compile_once(Typed program, const Context& c) {
  TOSAIC_TRY(Tosa tosa, make_tosa(std::move(program), c));
  return make_program(std::move(tosa), c);
}

Result<Tosa> make_tosa(Typed program, const Context& c) {
  TOSAIC_TRY(Split split, split_by_target(std::move(program), c));
  TOSAIC_TRY(Tosa tosa, lower_regions(std::move(split), c));
  return tidy_regions(std::move(tosa), c);
}

Result<Compiled> make_program(Tosa tosa, const Context& c) {
  TOSAIC_TRY(Compiled made, emit_delegates(std::move(tosa), c));
  if (!c.request.pack || !made.faults.empty()) return made;
  TOSAIC_TRY(made, pack_delegates(std::move(made), c));
  TOSAIC_TRY(made, check_delegates(std::move(made), c));
  if (!made.faults.empty()) return made;
  TOSAIC_CHECK(fits_board(made, c.options.emit));
  if (!c.request.several_methods) TOSAIC_CHECK(fits_flash(made, c.options.emit));
  return made;
}

Result<Comparison> compare_model(const ExportedProgram& program, const CompileOptions& given,
                                 const CompileCallbacks& heard, const ShownSamples& shown) {
  const bool integers = given.in_integers();
  TOSAIC_CHECK(integers ? comparable(program, given) : is_one_program(program, given));
  TOSAIC_TRY(const Settled how, settle(program, given, heard));
  const auto& [options, callbacks] = how;
  const Method& method = program.methods[0];
  const auto kept = std::make_shared<Samples>();
  StateContents contents;
  const SamplesFor samples_of_method = samples_given(method, callbacks);
  // A program that stays floats is not calibrated: what is given is to compare on.
  TOSAIC_TRY(
      Begun begun,
      begin_method(
          {method, options, callbacks, integers ? keeping(samples_of_method, kept) : SamplesFor(), {.pack = false}},
          contents));
  const Context& c = begun.context;
  TOSAIC_TRY(Observed seen, at_numbers(std::move(begun.program)));
  if (!integers) return compare_floats(std::move(seen), samples_of_method, shown, c);
  TOSAIC_CHECK(has_floats(seen));
  const FloatProgram floats = float_program(*seen.calibration);
  TOSAIC_TRY(const Samples samples,
             samples_to_compare(floats.graph, shown.samples, c.given ? *kept : seen.program.stored));
  TOSAIC_TRY(Typed typed, choose_types(std::move(seen), c));
  TOSAIC_TRY(const Split split, split_by_target(std::move(typed), c));
  return compare_split(floats, split, samples, shown, c);
}

}  // namespace tosaic
