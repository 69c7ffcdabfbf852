// SPDX-License-Identifier: Apache-2.0
// Two properties of a call on one tensor, computed from its lowering: does it move elements, or at least keep within
// their range? Only what moves elements may be rounded before as well as after.
#pragma once
#include "ir/graph.h"

namespace tosaic {

enum class Elements : std::uint8_t {
  moved,     // each is an element of the operand, or a number that does not depend on it: views, clamps, maxima
  averaged,  // none lies outside of the operand's range: pools, linear resizing
  computed,  // anything else
};
// Of the first operand, by the float lowering.
Elements elements_of(const Graph& graph, const Node& node);

}  // namespace tosaic
