// SPDX-License-Identifier: Apache-2.0
// A program with dynamic sizes on something that wants numbers: made ready for each combination of sizes when first
// met.
#pragma once
#include "api/runnable.h"
#include "ir/graph.h"

namespace tosaic {

using MakeRunnable = std::function<Result<Runnable>(Graph at_sizes)>;

// `graph` has no states. The last `most_sizes` combinations are kept. Errors of a run: model.size, and those of `make`.
inline constexpr std::size_t most_sizes = 16;
Runnable by_sizes(std::shared_ptr<const Graph> graph, MakeRunnable make, Runnable about);

}  // namespace tosaic
