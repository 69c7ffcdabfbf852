// SPDX-License-Identifier: Apache-2.0
// Mixed precision by measurement: calls of an int8 program get 16 bits in the order of what that brings for its cost,
// and what comes of it is compiled, run and measured again.
#pragma once
#include "pipeline/context.h"
#include "tosaic/tuning.hpp"

namespace tosaic {

// Without a budget nothing is chosen but int8, and the points show what there is. Errors: tune.budget, compare.*, those
// of compilation.
Result<Tuning> tune_model(const ExportedProgram& program, const CompileOptions& options,
                          const CompileCallbacks& callbacks, const ShownSamples& shown,
                          const std::optional<Budget>& budget);

// The options with what was chosen in 16 bits. What they decide by themselves wins.
CompileOptions widened(CompileOptions options, const Tuning& tuning);
// What was chosen, as a note; where nothing meets the budget, a warning: tune.missed.
Diagnostic told(const Tuning& tuning, const Budget& budget);

}  // namespace tosaic
