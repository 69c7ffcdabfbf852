// SPDX-License-Identifier: Apache-2.0
// int64 values beyond 32 bits that become the nearest int32 on their way into a delegate: who reads them and cannot
// tell.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// By value: nothing that reads it gives another result when it is saturated to 32 bits. An index beyond them is outside
// every table all the same; comparisons with smaller numbers, and what bounds it to smaller ones, are the same as well;
// what moves it or chooses among it passes it on. Sums and products, conversions to floats and outputs of the program
// would differ.
std::vector<char> saturation_safe(const Graph& graph);

// What a node's results are made of its operand `i`, saturated: `safe`, none but those that are saturated themselves,
// which are named by `passed_on`. By value of the trial's graph, which `computed` are made of it and of no use to
// anybody but GATHER and SCATTER.
struct Trial;
struct Saturated {
  bool safe = false;
  std::vector<char> passed_on;  // per result
  std::vector<char> touched;    // per value of the trial's graph: made of it
};
Saturated saturated_operand(const Trial& trial, std::size_t operand);

}  // namespace tosaic
