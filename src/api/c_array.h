// SPDX-License-Identifier: Apache-2.0
// The program as a C array, for firmware without a file system: the piece "header".
#pragma once
#include "pipeline/pipeline.h"

namespace tosaic {

// How it is called and where it lies: options of every compilation.
std::vector<OptionInfo> c_array_options();
// Of these options, what their kinds do not say. Error: option.value.
Status check_c_array_options(const Options& options);
Rope c_array(const Compiled& compiled, const Options& options);

}  // namespace tosaic
