// SPDX-License-Identifier: Apache-2.0
// Inputs that are indices, which a host can check before a run: shaders do not check them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic::shaders {

// What lies from `first` to before `end`.
struct IndexBounds {
  std::int64_t first = 0;
  Dim end;
};

// For each input what its elements have to be where they are the indices of rows (indices of GATHER and SCATTER), as
// they are, with a constant added or counted from the end where negative; nothing: it says none, or they are computed
// otherwise.
std::vector<std::optional<IndexBounds>> find_index_bounds(const Graph& graph);

}  // namespace tosaic::shaders
