// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  // Two numbers among quantised values: none of them has a scale but the result's.
  if (call.overload() == "Scalar" && !call.declared().empty() && call.declared()[0].quantised()) {
    const TensorType& type = call.declared()[0];
    const Val code = b.constant(type.with(Shape{}), constant_bytes(type.dtype, std::vector<std::int64_t>{0}));
    return b.select(b.cast(call.tensor("condition"), DType::boolean), b.like(code, call.number("self")),
                    b.like(code, call.number("other")));
  }
  auto p = promotion::promote(b, call, {"self", "other"}, promotion::Compute::as_is);
  return b.select(b.cast(call.tensor("condition"), DType::boolean), p.values[0], p.values[1]);
}
}  // namespace

AtenOp aten_where() {
  return {.schemas = {"where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
                      "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
                      "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
                      "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"},
          .summary = "self where condition holds, other elsewhere",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"b(2,3,4), x(2,3,4), x(2,3,4)", "b(3,1), x(2,3,4), x(4)", "b(12), i(-9,9,12), i(-9,9,12)",
                     "b(28), e(28), x()", "b(12), i(-9,9,12), x(12)", "b(6), x(6), b(6)", "b(6), b(6), b(6)",
                     "ScalarOther: b(2,3), x(2,3), 0.5", "ScalarOther: b(12), i(-9,9,12), 2.5",
                     "ScalarSelf: b(2,3), -inf, x(2,3) # integer=target.unsupported: what only leaves the program is "
                     "masked as floats",
                     "Scalar: b(6), 1.0, 0.0", "Scalar: b(6), 1, 2"},
          .out_overloads = {{"where.self", "self_out"}}};
}
}  // namespace tosaic
