// SPDX-License-Identifier: Apache-2.0
// Options that say what is wanted of the result, not how: which others they stand for is found by trials, before the
// program is compiled.
#pragma once
#include "pipeline/context.h"

namespace tosaic {

// How, and with samples that can be read again.
struct Settled {
  CompileOptions options;
  CompileCallbacks callbacks;
};
bool is_open(const CompileOptions& options);
// effort: what gives the better results on samples that it was not calibrated with. A program that has too few, or that
// cannot be compared with its floats, keeps the usual choices.
Result<Settled> settle_effort(const ExportedProgram& program, const CompileOptions& options,
                              const CompileCallbacks& callbacks);
// A question has no samples to try on. Error: option.budget.
Status answerable(const CompileOptions& options);
// effort and budget. Errors: those of tune_model.
Result<Settled> settle(const ExportedProgram& program, const CompileOptions& options,
                       const CompileCallbacks& callbacks);

}  // namespace tosaic
