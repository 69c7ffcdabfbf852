// SPDX-License-Identifier: Apache-2.0
// States as VARIABLEs of TOSA, for targets that have them (EXT-VARIABLE): a buffer that one delegate alone reads and
// writes stays inside it between runs, and is no tensor of the program any more.
#pragma once
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// `outer`: the program, whose nodes "delegate" call `regions`, in TOSA, by their attribute "region". What else reads or
// writes a buffer, a type that VARIABLE does not take, or a delegate that would give nothing more, leaves it a state.
void states_as_variables(Graph& outer, std::vector<Graph>& regions);

}  // namespace tosaic
