// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_layout(Planning& planning, std::uint32_t node);  // transpose, slice, reverse, tile, concat, pad
bool take_gather(Planning& planning, std::uint32_t node);
bool take_scatter(Planning& planning, std::uint32_t node);
}  // namespace tosaic::cpu
