// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/reduce.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const Val given = reduced_tensor(call);
  if (given.shape().is_empty()) return of_nothing(call, given, call.axes("dim", given.rank()), false, 0, DType::i32);
  Val x = b.cast(given, DType::boolean);
  return summed(x, call.axes("dim", x.rank()), false);
}
}  // namespace

AtenOp aten_count_nonzero() {
  return {.schemas = {"count_nonzero(Tensor self, int? dim=None) -> Tensor",
                      "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"},
          .summary = "how many elements are not zero",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: i(-1,1,3,4)", "default: i(-1,1,3,4), 1", "dim_IntList: i(-1,1,3,4), [0,1]",
                     "default: f(28)", "default: u(-1,3,4,5), 1"}};
}
}  // namespace tosaic
