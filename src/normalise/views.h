// SPDX-License-Identifier: Apache-2.0
// Views as maps of positions: which elements of the tensor it looks at a view shows. No list of operators says so;
// the view's own lowering does, run on a tensor of row-major numbers.
#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace tosaic {

// For each element of a view, in row-major order, the row-major position in the tensor that it looks at.
using Positions = std::vector<std::int64_t>;
// Of result `output` of the view `node`, whose first operand is what it looks at.
Result<Positions> view_positions(const Graph& graph, const Node& node, std::size_t output);

bool all_in_order(const Positions& positions, const Shape& base);
// The same elements in the same order, with dims split but none joined: possible whatever the strides are.
bool only_splits(const Shape& base, const Shape& view);

// `base` with `content` at the elements that a view with these positions shows, by nodes that are added. Refused where
// two elements of the view are one element of the base.
Result<ValueId> put_back(Graph& graph, ValueId base, ValueId content, const Positions& positions, const LocRef& loc);

}  // namespace tosaic
