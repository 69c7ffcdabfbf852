// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// An index in a sorted row is the number of elements before it.
Vals lower(Builder& b, const Call& call) {
  const bool bucketize = call.schema().name == "bucketize";
  const char* row = bucketize ? "boundaries" : "sorted_sequence";
  bool right = call.flag("right");
  if (!bucketize && call.has("side")) right |= call.text("side") == "right";
  if (!bucketize && call.has("sorter")) b.refuse("aten.searchsorted.sorter", "a row that is not sorted");
  auto p = promotion::promote(b, call, {row, "self"});
  Val sorted = p.values[0], x = p.values[1];
  if (sorted.rank() > 1 && sorted.rank() != x.rank())
    b.refuse("aten.searchsorted.rank",
             "values of shape " + to_string(x.shape()) + " in rows of shape " + to_string(sorted.shape()));
  if (sorted.rank() > 1) sorted = b.unsqueeze(sorted, sorted.rank() - 1);
  x = b.unsqueeze(x, x.rank());
  Val before = right ? functions::at_least(x, sorted) : functions::greater(x, sorted);
  return b.reduce(tosa::op::reduce_sum, b.cast(before, DType::i32), {before.rank() - 1}, false);
}
}  // namespace

AtenOp aten_bucketize() {
  return {.schemas = {"bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
                      "Tensor",
                      "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
                      "Tensor",
                      "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool "
                      "right=False, str? side=None, Tensor? sorter=None) -> Tensor",
                      "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
                      "right=False, str? side=None, Tensor? sorter=None) -> Tensor"},
          .summary = "the index at which each value would be inserted into a sorted row",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"x(2,3,4), s(-1,1,5)", "s(-2,2,9), s(-1,1,5), right=True", "i(-9,9,12), const(s(-8,8,5))",
                     "Scalar: 0.5, s(-1,1,5)", "searchsorted.Tensor: s(-1,1,5), x(2,3)",
                     "searchsorted.Tensor: s(-1,1,1,6), x(1,4), right=True",
                     "searchsorted.Tensor: s(-2,2,5), s(-2,2,9), side='right'",
                     "searchsorted.Scalar: s(-1,1,5), 0.5, right=True"}};
}
}  // namespace tosaic
