// SPDX-License-Identifier: Apache-2.0
// Attention by blocks of a query's rows: their scores stay in the cache from the product that makes them to the one
// that reads them as weights.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {

// Is it tosaic.attention, of a form and sizes for which this is faster than two products and a softmax?
bool has_attention_kernel(const Graph& graph, const Node& node);
bool take_attention(Planning& planning, std::uint32_t node);

}  // namespace tosaic::cpu
