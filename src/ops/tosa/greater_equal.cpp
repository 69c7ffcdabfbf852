// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
Op tosa_greater_equal() {
  Op op = binary_row("greater_equal", 48, "true where a is at least b, with broadcasting; false for NaN",
                     with(integers("in", {DType::i32}) + floats("in") + int64s("in"), "out", DType::boolean),
                     map_comparison<[](auto a, auto b) { return (a >= b); }>);
  op.inputs = {{"input1", "in"}, {"input2", "in"}};
  op.outputs = {{"output", "out"}};
  op.infer = infer_comparison;
  op.bounds = bounds::zero_or_one;
  op.moves = Moves::compared;
  op.core_aten = aten::op::ge_Tensor;
  return op;
}
}  // namespace tosaic::tosa
