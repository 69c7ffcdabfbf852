// SPDX-License-Identifier: Apache-2.0
// The graph in the form that leaves shaders least to do: weights that are quantised as one operand, and what is
// elementwise next to the kernels that finish it.
#pragma once
#include "ir/graph.h"

namespace tosaic::shaders {

// Values keep their numbers, names and dtypes.
Graph prepared(const Graph& graph);

}  // namespace tosaic::shaders
