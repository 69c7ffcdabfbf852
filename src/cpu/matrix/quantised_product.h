// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_quantised_product(Planning& planning,
                            std::uint32_t node);  // a product with a quantised weight (computed_weights.h)
bool take_quantised_gather(Planning& planning, std::uint32_t node);  // a GATHER of rows of one
}  // namespace tosaic::cpu
