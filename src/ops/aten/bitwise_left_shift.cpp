// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/bitwise.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// By less than nothing or by all of the bits, nothing of the number is left.
Vals lower(Builder& b, const Call& call) {
  ShiftOperands o = shift_operands(b, call);
  auto& p = o.promoted;
  Val shifted = b.binary(tosa::op::logical_left_shift, p.values[0], b.select(o.inside, o.count, b.like(o.count, 0.0)));
  return p.finished(b.select(o.inside, shifted, b.like(shifted, 0.0)));
}
}  // namespace

AtenOp aten_bitwise_left_shift() {
  return {.schemas = {"bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
                      "bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                      "bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                      "bitwise_left_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                      "bitwise_left_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                      "__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
                      "__lshift__.Scalar(Tensor self, Scalar other) -> Tensor"},
          .summary = "self * 2^other, the bits that leave are lost",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-99,99,2,3,4), i(0,9,3,1)", "i(-99,99,24), i(-40,40,24)", "i8(-100,100,24), i8(-9,9,24)",
                     "i8(-100,100,12), i(0,31,12)", "Tensor_Scalar: i(-99,99,12), 5", "Tensor_Scalar: i(-99,99,6), 40",
                     "Scalar_Tensor: -77, i(0,9,12)", "__lshift__.Tensor: i(-99,99,12), i(0,31,12)",
                     "__lshift__.Scalar: i(-99,99,12), 3", "__lshift__.Scalar: l(-99,99,12), 4"}};
}
}  // namespace tosaic
