// SPDX-License-Identifier: Apache-2.0
// A program with dynamic sizes on something that wants numbers: made ready for each combination of sizes when first
// met.
#pragma once
#include <functional>

#include "ir/graph.h"
#include "session/runnable.h"

namespace tosaic {

using MakeRunnable = std::function<Result<RunnablePtr>(Graph at_sizes)>;

// `graph` has no states; `known`: what it does not say. The last `most_sizes` combinations are kept. Errors of a run:
// model.size, and those of `make`.
inline constexpr std::size_t most_sizes = 16;
RunnablePtr by_sizes(std::shared_ptr<const Graph> graph, MakeRunnable make, Interface known);

}  // namespace tosaic
