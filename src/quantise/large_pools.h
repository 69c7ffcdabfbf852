// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "quantise/quantise.h"

namespace tosaic {

// Average pools over many elements, and those that divide by a number of their own, become calls whose results have
// ranges of their own. `inner` grows with the graph's values.
void average_with_ranges(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options);

}  // namespace tosaic
