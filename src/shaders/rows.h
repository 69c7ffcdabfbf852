// SPDX-License-Identifier: Apache-2.0
// Reductions of rows together with what is made of their results and the rows once more: softmax, normalisations and
// their like in one dispatch. A work group goes over its rows as often as they are reduced; what is elementwise is
// computed anew each time, from rows that are near by then.
#pragma once
#include <functional>

#include "plan/uses.h"
#include "shaders/kernels.h"

namespace tosaic::shaders {

// Does the node reduce rows that lie dense, in numbers of one word?
bool reduces_rows(const Graph& graph, const Node& node);
// Chains of nodes, ascending, that begin at reduction `first` and of which only the last one's result is seen outside;
// longest first. `can`: nodes that are free and elementwise, with a shader.
std::vector<std::vector<std::uint32_t>> row_chains(const plan::Uses& uses,
                                                   const std::function<bool(std::uint32_t node)>& can,
                                                   std::uint32_t first);
MadeList make_rows(const Work& work, const std::vector<std::uint32_t>& nodes);

}  // namespace tosaic::shaders
