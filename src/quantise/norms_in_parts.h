// SPDX-License-Identifier: Apache-2.0
// Norms in parts (function_in_parts.h): the factor f(size) that a row gets, whatever rows the samples have.
// Of 8-bit quantised values, where rows of the samples are alike: 1/size has the range that they show, and rows that
// are quieter would saturate there. Down to what a step of the quantised values makes, it is in parts, which costs
// little: only sizes are computed more than once. What 16 bits hold spans more than that: there the rows are scaled
// (row_norms.h). Of scaled rows: their largest element is 1, but their size depends on how many others are as large,
// from one spike to a row of signs; the samples show a little of that.
#pragma once
#include <vector>

#include "quantise/function_in_parts.h"
#include "quantise/quantise.h"
#include "quantise/row_norms.h"

namespace tosaic {

// Can a norm of 8-bit quantised values be said so? `wide`: values with 16 bits.
bool fits_parts(const Graph& graph, const RowNorm& norm, const std::vector<char>& wide, const std::vector<char>& inner,
                const QuantiseOptions& options);
// The sizes at which the parts of such a norm meet. `step`: of its source's quantised values.
Ends parts_of(const Graph& graph, const RowNorm& norm, double step, double largest_size);
// `ends[i]` are those of norm i. Sizes of which the functions cannot be asked are left in `refused`.
void hold_in_parts(Graph& graph, const std::vector<RowNorm>& norms, const std::vector<Ends>& ends,
                   std::vector<char>& inner, CertainRanges& certain, std::set<ValueId>& refused);
// All norms of scaled rows that are not in parts yet. `ends`: of the same program at other sizes; empty: they are left
// there.
void hold_scaled_in_parts(Graph& graph, const ScaledRows& scaled, const QuantiseOptions& options,
                          std::vector<char>& inner, CertainRanges& certain, std::vector<Ends>& ends);

}  // namespace tosaic
