// SPDX-License-Identifier: Apache-2.0
// What a symbolic size is made of.
#pragma once
#include <utility>
#include <vector>

#include "ir/dim.h"

namespace tosaic {

// The pairs of which max and min choose one, anywhere inside.
std::vector<std::pair<Dim, Dim>> chosen_between(const Dim& dim);

}  // namespace tosaic
