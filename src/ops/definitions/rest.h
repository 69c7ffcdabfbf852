// SPDX-License-Identifier: Apache-2.0
// What windows leave of their input at its end. TOSA wants strides to divide evenly, and PyTorch does not: lowerings
// cut off what no window reaches, or pad less. How much that is differs from size to size, so that one graph for many
// sizes has windows that leave it. Executors compute the same of both: results that fit are all that there are.
#pragma once
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa {

// In a Spec: the graph is one of many sizes. No feature of the standard, and in no Spec's text.
inline constexpr Feature sizes_vary{31};

// "<op>.output-size": strides divide what the windows can move by. Holds for whatever holds to its row's `check`; any
// other operator has no windows.
Check check_rest(const View& view);

}  // namespace tosaic::tosa
