// SPDX-License-Identifier: Apache-2.0
// Weights and activations in 16 bits, for those who asked for it.
#pragma once
#include "ir/graph.h"

namespace tosaic::shaders {

// The graph with f16 where its f32 values are kept between dispatches: activations, and weights of convolutions and
// products. Inputs, outputs and other constants stay as they are. Nodes then have operands of mixed types, which only
// shaders take: they load each as what it is, and compute in f32.
Graph in_half_precision(const Graph& graph);

}  // namespace tosaic::shaders
