// SPDX-License-Identifier: Apache-2.0
// From the pattern in which TOSA has a convolution of groups of channels, a SLICE and a CONV2D for each group and a
// CONCAT of all, to one node: tosaic.grouped_conv2d. What finishes each group before the CONCAT, the RESCALE of
// integers above all, finishes them all after it.
#pragma once
#include <functional>
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// `takes`: has the executor a kernel for groups whose first one this CONV2D is? `observed`: values that stay. A pattern
// of which anything is seen or read by others stays as well. False: nothing has changed. Values keep their numbers.
bool raise_grouped_convolutions(Graph& graph, const std::function<bool(const Graph& graph, const Node& node)>& takes,
                                std::span<const ValueId> observed = {});

}  // namespace tosaic::plan
