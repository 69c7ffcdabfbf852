// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/index.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The n-th position of the mask takes the n-th element of the source: positions before it, counted.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self"), mask = b.cast(call.tensor("mask"), DType::boolean), source = call.tensor("source");
  Val ones = b.broadcast_to(mask, x.shape());
  const std::int64_t n = x.shape().elements(), given = source.shape().elements();
  Val count = b.aten(aten::op::cumsum, {b.reshape(b.cast(ones, DType::i32), {n})}, {{"dim", std::int64_t{0}}});
  Val at = b.minimum(b.maximum(b.sub(count, b.like(count, 1.0)), b.like(count, 0.0)),
                     b.like(count, static_cast<double>(given - 1)));
  Val taken = b.reshape(selected(b.reshape(source, {given}), 0, at), x.shape());
  return b.select(ones, taken, x);
}
}  // namespace

AtenOp aten_masked_scatter() {
  return {.schemas = {"masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
                      "masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!)"},
          .summary = "a copy of x whose masked elements are replaced by those of a source, in order",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(3,4), b(3,4), x(12)", "x(2,3,4), b(3,1), x(5,5)", "i(-9,9,8), b(8), i(-9,9,2,4)",
                     "x(2,3), b(1,3), x(6)"}};
}
}  // namespace tosaic
