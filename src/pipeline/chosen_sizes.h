// SPDX-License-Identifier: Apache-2.0
// The sizes that a user chooses for a program with dynamic ones: "batch of x is 4" becomes numbers for its symbols.
#pragma once
#include <string>
#include <vector>

#include "ir/specialise.h"
#include "ir/tensor.h"
#include "targets/target.h"

namespace tosaic {

// Each choice is NAME=SIZE: NAME is a symbol ("s77"), or a dimension of an input ("x.0"), of which the program knows
// one symbol; SIZE is a number, or "max", the upper bound. Errors: option.value, model.size.
Result<Sizes> chosen_sizes(const Graph& graph, const std::vector<std::string>& choices);

// The graph at these sizes; one whose sizes are numbers is left as it is. Errors: those, model.dynamic-shape.
Result<Graph> at_chosen_sizes(const Graph& graph, const std::vector<std::string>& choices);

// Likewise, where symbols that nobody chooses may stay.
Result<Graph> with_chosen_sizes(const Graph& graph, const std::vector<std::string>& choices);

// Which of these two a target has: symbols stay where its payloads run at any sizes.
Result<Graph> at_sizes_for(const Target& target, const Graph& graph, const std::vector<std::string>& choices);

// Is NAME one of its sizes?
bool has_size(const Graph& graph, const std::string& choice);

// Those whose tensors are of the types that the graph takes.
std::vector<std::vector<Tensor>> fitting(const Graph& graph, const std::vector<std::vector<Tensor>>& samples);

}  // namespace tosaic
