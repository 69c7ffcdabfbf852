// SPDX-License-Identifier: Apache-2.0
// Which tables of 16-bit quantised values need a second one next to 0 (ops/fine_table.h): the samples say, as it costs
// a look-up more.
#pragma once
#include <cstddef>
#include <map>
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

// Nodes, on the ranges of groups as the samples show them and the histograms of those that have one.
std::vector<std::size_t> fine_tables(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                     const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan);

// In a program that others quantised, whose conversions are folded: where a quarter of the elements next to 0 would
// lose more than rounding to 8 bits does.
void mark_fine_tables(Graph& graph);

}  // namespace tosaic
