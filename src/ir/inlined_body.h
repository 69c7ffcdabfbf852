// SPDX-License-Identifier: Apache-2.0
// The nodes of a body as nodes of the graph around it.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

struct InlinedBody {
  std::vector<Node> nodes;       // in order, not yet in the graph
  std::vector<ValueId> results;  // what stands for the body's outputs
};

// `given` stands for the body's inputs, in order; its other values become new ones of `into`, named by `fresh`. Nodes
// stand for the exported node that holds the body, at their own lines.
using FreshName = std::function<std::string(const std::string& name_in_body)>;
InlinedBody inlined_body(Graph& into, const Graph& body, std::span<const ValueId> given, const LocRef& holder,
                         const FreshName& fresh);

// Arguments that name a value by its old name get the new one.
Attr renamed(Attr attr, const std::map<std::string, std::string>& names);

}  // namespace tosaic
