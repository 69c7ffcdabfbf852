// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_reduce_all() {
  Op op = choosing(
      reduction_row("reduce_all", 49, "true where all elements along an axis are", either("in_out", {DType::boolean}),
                    [](const Run& run) {
                      return fold<[](std::int64_t a, std::int64_t b) { return std::int64_t{a != 0 && b != 0}; },
                                  Domain::integers>(run, 1);
                    }),
      bounds::zero_or_one);
  // None is false.
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const ValueId x = calls.operand(0), no = calls.made(aten::op::logical_not, {x}, {}, calls.type(x));
    const Attrs attrs{{"dim", node.integer("axis")}, {"keepdim", true}};
    return calls.gives(aten::op::logical_not, {calls.made(aten::op::any_dim, {no}, attrs, node.out())});
  };
  return op;
}
}  // namespace tosaic::tosa
