// SPDX-License-Identifier: Apache-2.0
// The masks of a program that choose rows, found by the sizes that come of them.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// What a size comes of: the elements of a tensor that are not zero (a mask, mostly); and how many there are to choose
// from, at least 2, for a row by itself is told from no other dim.
struct Mask {
  ValueId value = no_value;
  std::int64_t count = 0;
};
using Masks = std::map<std::string, Mask>;  // by the symbol of that size

// x[:, mask]: the mask, and before which dims of x it stands.
struct Choice {
  ValueId mask = no_value;
  int dim = 0;
};
// Of the indices of an index or index_put.
std::optional<Choice> choice(const Graph& graph, std::span<const ValueId> indices);
// Of a call that gives the rows: x[mask], masked_select.
std::optional<Choice> chosen_rows(const Graph& graph, const Node& node);
// Are the indices that this call gives those of a mask, whose values the program computes?
bool gives_indices(const Graph& graph, const Node& node);

// For each value, the first one that is computed in the same way: x[x > 0] = x[x > 0].log() makes its mask twice.
std::vector<ValueId> first_equals(const Graph& graph);
Masks masks_of(const Graph& graph, const std::vector<ValueId>& equals);

// The symbol that a dim is, if it is one and nothing else.
std::optional<Symbol> only_symbol(const Dim& dim);

}  // namespace tosaic
