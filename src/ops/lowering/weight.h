// SPDX-License-Identifier: Apache-2.0
// How the weight of a convolution or a linear layer lies in memory, as its schema tells: the adjoints of convolutions
// are those with an output padding.
#pragma once
#include "ir/graph.h"
#include "ops/schema.h"

namespace tosaic {

// The dim of the argument `weight` that counts the result's channels; -1: none does.
int weight_axis(const Schema& schema, const Attrs& attrs);

}  // namespace tosaic
