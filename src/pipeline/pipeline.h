// SPDX-License-Identifier: Apache-2.0
// The compiler as one function in memory: what include/tosaic/compile.hpp offers, in terms of the stages.
#pragma once
#include "pipeline/context.h"

namespace tosaic {

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks, const Request& request = {});

}  // namespace tosaic
