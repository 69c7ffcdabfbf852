// SPDX-License-Identifier: Apache-2.0
// What users say of a compilation, as text, made what the pipeline reads.
#pragma once
#include <string>

#include "pipeline/options.h"
#include "tosaic/compile.hpp"

namespace tosaic {

// A target with its specification and options, all checked. Errors: target.unknown, option.*.
Result<CompileOptions> compile_options_for(const std::string& target, const Options& given);

}  // namespace tosaic
