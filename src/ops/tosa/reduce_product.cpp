// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_reduce_product() {
  Op op = reduction_row(
      "reduce_product", 53, "the product of the elements along an axis", floats("in_out"),
      [](const Run& run) { return fold<[](double a, double b) { return a * b; }, Domain::floats>(run, 1); });
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    return calls.gives(aten::op::prod_dim_int, {calls.operand(0)},
                       {{"dim", node.integer("axis")}, {"keepdim", true}, {"dtype", node.out().dtype}});
  };
  return op;
}
}  // namespace tosaic::tosa
