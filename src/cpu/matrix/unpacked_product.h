// SPDX-License-Identifier: Apache-2.0
// Products with large constant weights that stay where they are, and what they are: in the model's mapped file, whose
// pages the system may drop, in f32, f16 or bf16. Few rows meet them as they lie; for many, a block of them at a time
// becomes a panel in the scratch of a thread.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {

// Of a node as it is before or behind the widening of narrow floats.
bool reads_unpacked(const Graph& graph, const Node& node);
bool take_unpacked(Planning& planning, std::uint32_t node);

}  // namespace tosaic::cpu
