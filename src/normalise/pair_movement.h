// SPDX-License-Identifier: Apache-2.0
// Calls that move, choose or add up elements, whatever these are: on pairs they are the same calls, along the same dims
// of tensors that have one more. Private to normalise/.
#pragma once
#include <optional>

#include "ir/graph.h"

namespace tosaic::pairs {

struct Moved {
  Operator op;
  Attrs attrs;
};
// `pairs`: the shape of the first complex tensor that the call reads. Nothing: it is no such call, or has no such form.
std::optional<Moved> moved(const Node& node, const Shape& pairs);

}  // namespace tosaic::pairs
