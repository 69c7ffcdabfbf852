// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_reduce_sum() {
  Op op = bounded(
      reduction_row("reduce_sum", 54, "the sum of the elements along an axis",
                    integers("in_out", {DType::i32}) + floats("in_out") + int64s("in_out"),
                    [](const Run& run) { return fold<[](auto a, auto b) { return a + b; }, Domain::both>(run, 0); }),
      bounds::along_axis);
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const std::vector<std::int64_t> dims{node.integer("axis")};
    return calls.gives(aten::op::sum_dim_IntList, {calls.operand(0)},
                       {{"dim", dims}, {"keepdim", true}, {"dtype", node.out().dtype}});
  };
  return op;
}
}  // namespace tosaic::tosa
