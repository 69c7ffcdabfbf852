// SPDX-License-Identifier: Apache-2.0
// What of a program can be run for calibration. Private to quantise/.
#pragma once
#include <vector>

#include "lower/lower.h"
#include "quantise/quantise.h"

namespace tosaic {

// The graph lowered for the CPU, without the nodes that cannot be run (unknown operators, arguments that TOSA does not
// say) and those that read their results; `hidden[v]`: value v is one of theirs. A warning tells of the first.
Result<Lowered> lower_observable(const Graph& graph, std::vector<char>& hidden, const Sink& sink);

}  // namespace tosaic
