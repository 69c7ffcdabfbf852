// SPDX-License-Identifier: Apache-2.0
// Inputs that say places, of which a host can tell before a run whether there are such places: shaders do not tell.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic::shaders {

// For each input how many rows there are where all its elements are the places of rows (indices of GATHER and SCATTER);
// nothing: it is none, or what is computed of it is.
std::vector<std::optional<Dim>> rows_of_inputs(const Graph& graph);

}  // namespace tosaic::shaders
