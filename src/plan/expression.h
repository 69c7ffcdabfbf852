// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes that together compute one tensor, as an expression over its elements: what a loop on a CPU does
// block by block, and an invocation of a shader for each element.
#pragma once
#include <vector>

#include "ops/definitions/tosa_op.h"

namespace tosaic::plan {

struct Expression {
  // A tensor that is read. Element (i0, i1, ...) of the result needs its element offset + sum i*strides.
  struct Input {
    ValueId value = no_value;
    std::vector<std::int64_t>
        strides;  // in elements, one per dim of `shape`; 0: repeated along it; none where a size is symbolic
    std::int64_t offset = 0;  // not 0 only where an executor has put it in
  };
  // A node. Each operand is input i (i >= 0) or the result of an earlier call c (~c). The node's further operands are
  // constants of the operator, which it reads itself.
  struct Call {
    std::uint32_t node = 0;
    std::vector<int> operands;
  };
  ValueId output = no_value;  // the last call's result
  Shape shape;
  std::vector<Input> inputs;  // by first use
  std::vector<Call> calls;
};

// The operands of an elementwise operator that are tensors to walk over; after them stand its constants.
std::size_t walked_operands(const tosa::Op& op);

// `nodes`: elementwise, one result each, ascending; the last one's is the output. Who needs another
// one's result outside stores that as well.
Expression expression_of(const Graph& graph, const std::vector<std::uint32_t>& nodes);

}  // namespace tosaic::plan
