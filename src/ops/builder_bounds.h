// SPDX-License-Identifier: Apache-2.0
// What the integers of a lowered call can become at worst: interval arithmetic over its TOSA nodes, from all quantised
// values that its 8- and 16-bit operands may hold. TOSA leaves a sum, a product or a RESCALE that its dtype cannot hold
// unpredictable, so none may be possible.
#pragma once
#include <optional>
#include <string>

#include "ir/graph.h"

namespace tosaic {

// The largest magnitude that `v` may have. Its producers are followed back to tensors of 16 bits or fewer.
double largest_integer(const Graph& graph, ValueId v);

struct Overflow {
  std::string what;  // "tosa.add may reach 2^33"
  double factor;     // this many times more than fits
};
// The worst of the quantised nodes from `first_node` on.
std::optional<Overflow> possible_overflow(const Graph& graph, std::size_t first_node);

}  // namespace tosaic
