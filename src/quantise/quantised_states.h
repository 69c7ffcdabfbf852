// SPDX-License-Identifier: Apache-2.0
// Caches of a program of floats in 8 bits: rows that are written by index are quantised as they come, each with a scale
// of its own, and what reads the cache reads the reals. A key/value cache takes a quarter of the memory so.
#pragma once
#include <functional>

#include "base/diagnostic.h"
#include "ir/graph.h"

namespace tosaic {

// Of a normalised program. A state [..., n] of floats whose content is only ever written by rows becomes two: the
// quantised values, of the same name, and NAME.scales [..., 1]. Others stay floats, which a note says:
// quantise.float-states.
Status quantise_states(Graph& graph, const std::function<void(Diagnostic)>& sink = {});

}  // namespace tosaic
