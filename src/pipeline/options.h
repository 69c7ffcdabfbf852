// SPDX-License-Identifier: Apache-2.0
// What a user may say of a compilation, and what follows from it for the stages.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pipeline/graph_report.h"
#include "pipeline/normal_form.h"
#include "quantise/quantise.h"
#include "quantise/weight_quantisation.h"
#include "read/pt2.h"
#include "targets/target.h"
#include "tosaic/tuning.hpp"

namespace tosaic {

// best: what helps is found by trials.
enum class Effort : std::uint8_t { usual, best };

struct CompileOptions {
  Target target;
  bool spec_given = false;       // its specification, by the user: nothing is added to it then
  Options emit;                  // the target's own
  bool quantise_always = false;  // also for targets that would take floats
  QuantiseOptions quantise;
  WeightQuantisation weight_quantisation;  // of a program that stays floats
  bool quantises_states = false;           // of such a program
  bool quantised_io = false, require_full_delegation = false, single_delegate = false;
  bool fold_as_pytorch = false;           // as in normalise.h
  bool self_check = true;                 // where the target has one
  bool strip = false;                     // payloads and graphs without locations in the user's source
  GraphReportOptions show;                // of graphs on their way
  std::vector<std::string> sizes;         // "x.0=4": of dynamic sizes
  std::vector<std::string> input_layout;  // "nhwc", "x=nhwc": of images (input_layout.h)
  Effort effort = Effort::usual;
  std::optional<Budget> budget;
  Options said;  // all that the user gave
  // Floats become integers. (Targets without integers keep PT2E's conversions as arithmetic.)
  bool in_integers() const { return target.integer() || quantise_always || !quantise.request.empty(); }
  // Weights stay quantised with scales, for who computes with them.
  bool keeps_quantised_weights() const { return target.keeps_quantised_weights() && !in_integers(); }
  // Samples then say how weights of a program of floats are best rounded.
  bool rounds_weights_of_floats() const;
};

// Why a program of floats gets no quantised weights for this target.
Diagnostic no_quantised_weights(const Target& target);
// Of a compilation for a target that has become `spec`.
FormFor form_for(const CompileOptions& options, const tosa::Spec& spec);
// How the options want a program quantised.
QuantiseOptions how_to_quantise(const CompileOptions& options, const Graph& exported);

// The target's specification with the extensions that the program's floats need, each of which is said: the precision
// is the model's, unless the user said what the target takes.
tosa::Spec spec_for(const Graph& program, const CompileOptions& options, const Sink& sink);

}  // namespace tosaic
