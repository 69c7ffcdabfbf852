// SPDX-License-Identifier: Apache-2.0
// The line of a program that stays floats and runs here and now: normalise -> lower -> tidy, with all of TOSA and no
// target. A library of its own below the rest of the line, for a delegate that holds PyTorch's operators lowers them.
#pragma once
#include <cstdint>

#include "base/diagnostic.h"
#include "ir/graph.h"

namespace tosaic {

// Normalised; PT2E's conversions stay arithmetic, no weight is larger than that (0: any size), and what it would return
// as Python scalars are tensors. Errors: those of normalise; model.effect, model.control-flow.
Result<Graph> normal_in_floats(Graph program, std::uint64_t most_weight_bytes = 0, const Sink& sink = {});
// As TOSA, tidied. Errors: those of lower.
Result<Graph> tosa_in_floats(const Graph& normal);

// item() of what is returned: whoever runs the graph takes the number out.
void return_scalars_as_tensors(Graph& graph);

}  // namespace tosaic
