// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_reduce_any() {
  Op op = choosing(
      reduction_row("reduce_any", 50, "true where any element along an axis is", either("in_out", {DType::boolean}),
                    [](const Run& run) {
                      return fold<[](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 || b != 0}; },
                                  Domain::integers>(run, 0);
                    }),
      bounds::zero_or_one);
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::any_dim, {calls.operand(0)}, {{"dim", node.integer("axis")}, {"keepdim", true}});
  };
  return op;
}
}  // namespace tosaic::tosa
