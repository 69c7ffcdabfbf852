// SPDX-License-Identifier: Apache-2.0
// Which tables of 16-bit quantised values need a second one next to 0 (ops/fine_table.h): the samples say, as it costs
// a look-up more. Private to quantise/.
#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

// Nodes, on the ranges of groups as the samples show them and the histograms of those that have one.
std::vector<std::size_t> fine_tables(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                     const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan);

}  // namespace tosaic
