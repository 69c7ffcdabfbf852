// SPDX-License-Identifier: Apache-2.0
// The compiler as one function in memory: what include/tosaic/compile.hpp offers, in terms of the stages.
#pragma once
#include "pipeline/context.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks, const Request& request = {});
// The program as it would be compiled, held against its floats.
Result<Comparison> compare_model(const ExportedProgram& program, const CompileOptions& options,
                                 const CompileCallbacks& callbacks, const ShownSamples& shown);

}  // namespace tosaic
