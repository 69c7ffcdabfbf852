// SPDX-License-Identifier: Apache-2.0
// The steps between the model and the program, in order: each takes a value and gives the next. pipeline.cpp is the
// line that they make.
#pragma once
#include <map>
#include <string>
#include <variant>

#include "lower/lower.h"
#include "pipeline/context.h"

namespace tosaic {

// normal_form.cpp
Result<Normal> normalise_program(Graph program, const Context& c);

// weights_on_samples.cpp: what the samples say of the weights of a program that stays floats goes into `c.weights`.
Status round_weights(const Graph& program, const Context& c);

// types.cpp: where the types of a program's tensors come from: its own conversions (PT2E), samples of its sizes,
// samples of others, or nowhere, as it stays floats. States begin with `contents`, and leave theirs. `elsewhere`: what
// the program was found to be at other sizes, instead of samples.
Result<Observed> observe_ranges(Normal program, Calibration* elsewhere, StateContents& contents, const Context& c);
Result<Typed> choose_types(Observed program, const Context& c);
// The same without samples, for questions: the plan's types on nominal scales, or the program's own.
// `quantised_io`: as the options say it.
Result<Graph> nominal_types(Graph normal, bool by_pt2e, bool quantised_io, const QuantiseOptions& how,
                            const tosa::Spec& spec);
// Of a program that somebody else quantises, the parameters with which small channels are larger; only those that
// change, by their names in the exported graph. None where sizes vary.
Result<std::map<std::string, Tensor>> equalised_parameters(const Context& c);
// Samples have sizes of their own, and are one sequence of runs: the program is calibrated at each size, and what a
// tensor is seen to hold at any of them is its range at all. Nothing: it has nothing to calibrate.
Result<std::optional<Calibration>> calibrate_over_sizes(const Graph& varying, const Samples& samples, const Context& c);

// regions.cpp: the TOSA graphs of its delegates.
Result<Split> split_by_target(Typed program, const Context& c);
Result<Tosa> lower_regions(Split program, const Context& c);
Result<Tosa> tidy_regions(Tosa program, const Context& c);
// The same of one region, for who tries parts of it. `call`: of it, whose unread operands go; nullptr: there is none.
Result<Graph> lower_region(const Graph& region, const Context& c);
Result<Lowered> lowered_region(const Graph& region, const Context& c);  // with what its values became
void tidy_region(Graph& region, Node* call, const Context& c);

// delegates.cpp: their payloads, and the program that calls them. They are checked where they are another compiler's.
Result<Compiled> emit_delegates(Tosa program, const Context& c);
Result<Compiled> pack_delegates(Compiled program, const Context& c);
Result<Compiled> check_delegates(Compiled program, const Context& c);
// Is an emitter's error about this very graph, and not about its compiler, or what that was told?
bool of_the_graph(const Diagnostic& why);

// Stretches of the line, for who goes along them more than once. With faults it is no program yet.
Result<Observed> observe_program(Graph program, Calibration* elsewhere, StateContents& contents, const Context& c);
Result<Tosa> make_tosa(Typed program, const Context& c);
Result<Compiled> make_program(Tosa program, const Context& c);
Result<Compiled> compile_once(Typed program, const Context& c);

// attempts.cpp: where another compiler makes the payloads, again and again, until no delegate is wrong. What that
// compiler cannot take goes elsewhere.
Result<Compiled> compile_until_right(Typed program, const Context& c);

// varying_sizes.cpp: sizes that stay symbols. What a program becomes at some of them is one program for all.
Result<Compiled> compile_over_sizes(Graph varying, const Context& c);
// What the steps look at that take it at one of its sizes, as far as TOSA.
Context at_one_size(const Context& c, const Graph& varying, bool silent);

// A method as far as what its samples say: methods that share states have their ranges brought together then.
struct Begun {
  Context context;
  std::variant<Graph, Observed> program;  // a Graph: its sizes vary, and what it becomes at some of them says the rest
};
Result<Begun> begin_method(Context c, StateContents& contents);
Result<Compiled> finish_method(Begun method);
Result<Compiled> compile_method(Context c);

}  // namespace tosaic
