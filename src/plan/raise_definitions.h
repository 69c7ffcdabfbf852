// SPDX-License-Identifier: Apache-2.0
// From nodes that are the definition of an extension operator (ops/definitions/extension.h) to that operator. What is
// found is what the operators' own files write; there is no second pattern.
#pragma once
#include <functional>
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

// `takes`: has the executor a kernel for this node? `observed`: values that stay. False: nothing has changed. Values
// keep their numbers.
bool raise_definitions(Graph& graph, const std::function<bool(const Graph& graph, const Node& node)>& takes,
                       std::span<const ValueId> observed = {});

}  // namespace tosaic::plan
