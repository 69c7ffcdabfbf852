// SPDX-License-Identifier: Apache-2.0
// Norms of 8-bit codes. Where rows of the samples are alike, the factor 1/size that a row gets has the range that they
// show, and rows that are quieter would saturate there. Down to what a step of the codes makes, 1/size is a function in
// parts (function_in_parts.h), which costs little: only sizes are computed more than once. What 16 bits hold spans more
// than that: there the rows are scaled (row_norms.h).
#pragma once
#include <vector>

#include "quantise/row_norms.h"

namespace tosaic {

// Can it be said so? `wide`: values with 16 bits.
bool fits_parts(const Graph& graph, const RowNorm& norm, const std::vector<char>& wide, const std::vector<char>& inner,
                const QuantiseOptions& options);
// The sizes at which the parts of such a norm meet. `step`: of its source's codes.
std::vector<double> parts_of(const Graph& graph, const RowNorm& norm, double step, double largest_size);
// `ends[i]` are those of norm i. Sizes of which the functions cannot be asked are left in `refused`.
void hold_in_parts(Graph& graph, const std::vector<RowNorm>& norms, const std::vector<std::vector<double>>& ends,
                   std::vector<char>& inner, CertainRanges& certain, std::set<ValueId>& refused);

}  // namespace tosaic
