// SPDX-License-Identifier: Apache-2.0
// What each quantised tensor adds to the error of the results: it alone is rounded to its type, everything else is
// computed in floats.
#pragma once
#include <string>
#include <vector>

#include "compare/compare.h"

namespace tosaic {

struct RoundingNoise {
  ValueId value = no_value;        // of the quantised program
  std::vector<std::size_t> calls;  // of its layer, nodes there; empty: the program is given it
  double noise = 0;                // summed over the float results: squared error over squared result
};

// Of inputs, and of results of layers (compare/layers.h), that have 8 bits, in the program's order. `samples` as
// compare_programs takes them: a part of them is run, as the figures are for ranking. Errors: run.*, compile.cancelled.
Result<std::vector<RoundingNoise>> find_rounding_noise(const FloatProgram& floats, const Graph& quantised,
                                                       const std::vector<std::vector<Tensor>>& samples,
                                                       const CompareHow& how);

}  // namespace tosaic
