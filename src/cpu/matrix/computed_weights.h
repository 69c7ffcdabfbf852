// SPDX-License-Identifier: Apache-2.0
// Weights and tables that a program computes of constants: packed quantised values, mostly times their scales. A run
// has no need to compute them anew. Where a product or a look-up of rows can take them as quantised values they stay
// quantised (plan/raise.h), else they become the floats that they are.
#pragma once
#include <span>

#include "ir/graph.h"

namespace tosaic::cpu {

// Takes what computes such weights out of the graph.
Status compute_weights(Graph& graph, std::span<const ValueId> observed);

}  // namespace tosaic::cpu
