// SPDX-License-Identifier: Apache-2.0
// A program that is compiled again and again, with other choices each time, run on the same samples, and held against
// its floats.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/context.h"
#include "pipeline/stages.h"
#include "quantise/float_program.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

struct TrialRun {
  Split split;
  FloatProgram floats;
  double db = 0;                          // signal to noise of the worst output; infinity: equal
  std::optional<RightAnswers> right;      // where there are labels
  double cost = 0;                        // Vela's cycles, or bytes of activations that calls read and write
  std::map<std::string, double> cost_of;  // by exported node
};

class Trials {
 public:
  // `estimated`: costs are the target's estimate.
  // Everything that is passed has to live as long.
  Trials(const ExportedProgram& program, const CompileCallbacks& callbacks, const ShownSamples& shown, bool estimated);

  // Errors: compare.*, those of compilation. What is to be said is said of the first alone.
  Result<TrialRun> run(const CompileOptions& options);
  // What the last one was run on.
  const Samples& samples() const { return *samples_; }

 private:
  SamplesFor calibration();

  const Method& method_;
  const CompileCallbacks& callbacks_;
  const SamplesFor given_;
  const ShownSamples& shown_;
  const bool estimated_;
  const std::shared_ptr<Samples> kept_ = std::make_shared<Samples>();
  std::optional<Samples> samples_;
  std::size_t tried_ = 0;
};

}  // namespace tosaic
