// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/bitwise.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// By less than nothing or by all of the bits, only the sign is left.
Vals lower(Builder& b, const Call& call) {
  ShiftOperands o = shift_operands(b, call);
  auto& p = o.promoted;
  Val count = b.select(o.inside, o.count, b.like(o.count, o.last));
  return p.finished(b.binary(tosa::op::arithmetic_right_shift, p.values[0], count, {{"round", false}}));
}
}  // namespace

AtenOp aten_bitwise_right_shift() {
  return {.schemas = {"bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
                      "bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                      "bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                      "bitwise_right_shift_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
                      "bitwise_right_shift_.Tensor_Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
                      "__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
                      "__rshift__.Scalar(Tensor self, Scalar other) -> Tensor"},
          .summary = "self / 2^other, rounded down",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"i(-99,99,2,3,4), i(0,9,3,1)", "i(-99,99,24), i(-40,40,24)", "i8(-100,100,24), i8(-9,9,24)",
                     "i8(-100,100,12), i(0,31,12)", "Tensor_Scalar: i(-99,99,12), 5", "Tensor_Scalar: i(-99,99,6), 40",
                     "Scalar_Tensor: -77, i(0,9,12)", "__rshift__.Tensor: i(-99,99,12), i(0,31,12)",
                     "__rshift__.Scalar: i(-99,99,12), 3", "__rshift__.Scalar: l(-99,99,12), 4"}};
}
}  // namespace tosaic
