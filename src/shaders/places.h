// SPDX-License-Identifier: Apache-2.0
// Inputs that say places, of which a host can tell before a run whether there are such places: shaders do not tell.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic::shaders {

// What lies from `first` to before `end`.
struct Places {
  std::int64_t first = 0;
  Dim end;
};

// For each input what its elements have to be where they are the places of rows (indices of GATHER and SCATTER), as
// they are, with a constant added or counted from the end where negative; nothing: it says none, or they are computed
// otherwise.
std::vector<std::optional<Places>> places_of_inputs(const Graph& graph);

}  // namespace tosaic::shaders
