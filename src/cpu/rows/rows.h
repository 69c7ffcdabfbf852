// SPDX-License-Identifier: Apache-2.0
// Rows of floats that lie in the first-level cache from their first reduction until their results are written.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {

// Is it an extension operator on f32 rows of neighbours, for one of these?
bool has_row_kernel(const Graph& graph, const Node& node);

bool take_softmax(Planning& planning, std::uint32_t node);        // tosaic.softmax
bool take_layer_norm(Planning& planning, std::uint32_t node);     // tosaic.layer_norm
bool take_rms_norm(Planning& planning, std::uint32_t node);       // tosaic.rms_norm
bool take_quantise_rows(Planning& planning, std::uint32_t node);  // tosaic.quantise_rows

}  // namespace tosaic::cpu
