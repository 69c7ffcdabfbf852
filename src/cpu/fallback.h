// SPDX-License-Identifier: Apache-2.0
// Kernel rows that need no arithmetic of their own.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_view(Planning& planning, std::uint32_t node);       // reshape, identity: the output lies where the input lies
bool take_reference(Planning& planning, std::uint32_t node);  // any operator, by its row's own evaluation
}  // namespace tosaic::cpu
