// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions, and those of narrow groups of channels: vectors over the channels, tasks over rows of the
// output.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_depthwise(Planning& planning, std::uint32_t node);
bool take_groups(Planning& planning, std::uint32_t node);
}  // namespace tosaic::cpu
