// SPDX-License-Identifier: Apache-2.0
// What PyTorch's naming says of an operator that we have no schema of: "aten.add.out" writes to a tensor that it is
// given (and "aten.relu_.default" to its first one, ir/graph.h).
#pragma once
#include <string_view>

#include "ir/graph.h"
#include "ir/program_operators.h"

namespace tosaic {

inline bool name_says_out(Operator op) { return op.overload() == "out" || op.overload().ends_with("_out"); }

// Gives an element of its one operand as a number of Python's, whose type is its result's.
inline bool gives_scalar(const Node& node) {
  return (node.op == aten::op::item || node.op == aten::op::_local_scalar_dense) && node.inputs.size() == 1 &&
         node.inputs[0] != no_value && node.outputs.size() == 1 && node.outputs[0] != no_value;
}

// Gives the indices of its one operand's elements that are not zero: a vector for each dim, or one matrix (nonzero).
inline bool gives_indices(const Node& node) {
  return (node.op == aten::op::where || node.op == aten::op::nonzero || node.op == aten::op::nonzero_numpy) &&
         node.inputs.size() == 1 && node.inputs[0] != no_value && !node.outputs.empty();
}

}  // namespace tosaic
