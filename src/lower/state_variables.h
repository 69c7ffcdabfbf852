// SPDX-License-Identifier: Apache-2.0
// States as VARIABLEs of TOSA, for targets that have them (EXT-VARIABLE): a buffer that one delegate alone reads and
// writes stays inside it between runs, and is no tensor of the program any more.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

// `outer`: the program, whose nodes "delegate" call `regions`, in TOSA, by their attribute "region". Where conversions
// stand between, the variable holds the quantised values that the delegate reads. What else reads or writes a buffer, a
// type that VARIABLE does not take, a delegate that would give nothing more, or another method that keeps it, too
// (`shared`), leaves it a state.
void states_as_variables(Graph& outer, std::vector<Graph>& regions, const tosa::Spec& spec,
                         const std::set<std::string>& shared);

}  // namespace tosaic
