// SPDX-License-Identifier: Apache-2.0
// What a compiled program is run on when it is tried.
#pragma once
#include <random>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

// Seeded elements: reals in -1 .. 1, any quantised values, other integers 0 or 1.
Tensor seeded(const TensorType& type, std::mt19937& random);
// A sample as the compiled program takes it, whose inputs are `wanted`: quantised as `program` says, the graph with
// scales; where it does not fit, seeded elements.
std::vector<Tensor> arguments_for(const Graph& program, const std::vector<TensorType>& wanted,
                                  const std::vector<Tensor>& sample);

}  // namespace tosaic
