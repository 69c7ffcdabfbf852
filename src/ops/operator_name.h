// SPDX-License-Identifier: Apache-2.0
// What PyTorch's naming says of an operator that we have no schema of: "aten.add.out" writes to a tensor that it is
// given (and "aten.relu_.default" to its first one, ir/graph.h).
#pragma once
#include <string_view>

#include "ir/graph.h"

namespace tosaic {

inline std::string_view overload_in(std::string_view op) { return op.substr(op.rfind('.') + 1); }

inline bool name_says_out(std::string_view op) { return overload_in(op) == "out" || overload_in(op).ends_with("_out"); }

// Gives an element of its one operand as a number of Python's, whose type is its result's.
inline bool gives_number(const Node& node) {
  return (node.op == "aten.item.default" || node.op == "aten._local_scalar_dense.default") && node.inputs.size() == 1 &&
         node.inputs[0] != no_value && node.outputs.size() == 1 && node.outputs[0] != no_value;
}

// Gives the places of its one operand's elements that are not zero: a vector for each dim, or one matrix (nonzero).
inline bool gives_places(const Node& node) {
  return (node.op == "aten.where.default" || node.op == "aten.nonzero.default" ||
          node.op == "aten.nonzero_numpy.default") &&
         node.inputs.size() == 1 && node.inputs[0] != no_value && !node.outputs.empty();
}

}  // namespace tosaic
