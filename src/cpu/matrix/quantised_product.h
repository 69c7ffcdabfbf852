// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_quantised_product(Planning& planning, std::uint32_t node);  // tosaic.scaled_product
bool take_quantised_gather(Planning& planning, std::uint32_t node);   // tosaic.scaled_gather
}  // namespace tosaic::cpu
