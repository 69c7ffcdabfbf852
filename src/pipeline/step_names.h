// SPDX-License-Identifier: Apache-2.0
// The names of what a program goes through: stages, and the rewrites of stages.
#pragma once
#include <string>
#include <vector>

#include "pipeline/options.h"

namespace tosaic {

// "normalise/functionalise", ..., "normalise", ..., "tidy", in the order in which a compilation with these options
// meets them.
Result<std::vector<std::string>> step_names(CompileOptions options);

// Are all names of the report such? Error: option.value, with the nearest ones.
Status check_step_names(const CompileOptions& options);

}  // namespace tosaic
