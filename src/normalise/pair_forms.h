// SPDX-License-Identifier: Apache-2.0
// Which form each operator has on pairs. Private to normalise/.
#pragma once
#include <vector>

#include "ops/op.h"

namespace tosaic::pairs {

// The results of a call that reads or gives complex numbers, or is made for them. `complex[v]`: v is pairs. Throws
// Refusal: model.complex.
Vals in_pairs(Builder& b, Graph& graph, const Node& node, const std::vector<char>& complex);

}  // namespace tosaic::pairs
