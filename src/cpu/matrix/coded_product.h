// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {
bool take_coded(Planning& planning, std::uint32_t node);       // a product with a weight of codes (coded_weight.h)
bool take_coded_rows(Planning& planning, std::uint32_t node);  // a GATHER of rows of one
}  // namespace tosaic::cpu
