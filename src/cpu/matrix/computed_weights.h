// SPDX-License-Identifier: Apache-2.0
// Weights and tables that a program computes of constants: packed quantised values, mostly times their scales. A run
// has no need to compute them anew. Where a product or a look-up of rows can take them as quantised values they stay
// quantised, else they become the floats that they are.
#pragma once
#include <span>

#include "cpu/step.h"

namespace tosaic::cpu {

// Takes what computes such weights out of the graph. What can take them reads a value that nothing computes, and
// products the quantised values of their activations, where these have one scale for each row
// (plan/per_row_quantisation.h). `lasting`: see cpu::Options; what the same memory is packed to then exists once.
Result<QuantisedWeights> compute_weights(Graph& graph, std::span<const ValueId> observed, bool lasting);

}  // namespace tosaic::cpu
