// SPDX-License-Identifier: Apache-2.0
// What Ethos-U85 may compute as one chain of commands, and how a node is kept out of it.
#pragma once
#include <vector>

#include "targets/ethos_u/rewrites.h"

namespace tosaic::ethos_u {

// Part of the command before it, or a view of its result.
bool goes_along(const Node& node);
// A command on elements, which others may be chained to.
bool commands_elements(const Node& node);
// The operands that are tensors, by place.
std::vector<std::size_t> tensor_operands(const Node& node);

Ints without_leading_ones(const Shape& shape);
// Whether Vela may take the two for one shape when it asks if one command can be chained to another: as images, and
// with few channels in dims of its own, for which only the number of elements counts.
bool compared_equal(const Shape& a, const Shape& b);

// Each marked node computes in dims that neither it has nor what it might be chained to, between views: a command is
// chained only to one of its own shape. A node that has no such dims stays.
void in_other_shapes(Graph& graph, const std::vector<char>& marked);

}  // namespace tosaic::ethos_u
