// SPDX-License-Identifier: Apache-2.0
// What a call computes, asked of its own float lowering: functions at points, sums at unit vectors.
#pragma once
#include <vector>

#include "ops/trial.h"

namespace tosaic {

// The call with tensors of `shape` for its operands; constants of one element stay what they are.
Result<Trial> try_in_shape(const Graph& graph, const Node& node, const Shape& shape);

// The first result, in double, for the given values of the trial's inputs, which are floats.
Result<std::vector<double>> computed_at(const Trial& trial, const std::vector<std::vector<double>>& values);

// The reals at the ends of a type's quantised values, one scale for all.
tosa::Bounds reals_of(const TensorType& type);
// The largest magnitude of these.
double reach_of(const TensorType& type);

// Does the call, whose first operand has these bounds, put numbers beyond them among its elements (pad, clamp)?
bool exceeds(const Graph& graph, const Node& node, double lowest, double highest);

}  // namespace tosaic
