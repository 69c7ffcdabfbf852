// SPDX-License-Identifier: Apache-2.0
// A program whose sizes vary is one delegate and nothing outside it: what stands between delegates is called at the
// sizes of an input, and has to know them.
#pragma once
#include "pipeline/context.h"

namespace tosaic {

// Error: what else the program would have, or model.dynamic-shape.
Status is_one_delegate(const Tosa& program);
// The delegate itself narrows and widens integers: kernels outside it would have to be told the sizes.
Status call_alone(Graph& outer);
// As the program calls them: runtimes tell of sizes by these names.
void name_inputs(Graph& region, const Graph& outer);

}  // namespace tosaic
