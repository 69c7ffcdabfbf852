// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const Val given = call.tensor("self");
  const DType type = given.dtype();  // TOSA compares floats and i32
  const bool narrow = !given.type().quantised() && (type == DType::u8 || type == DType::i8 || type == DType::i16);
  const Val x = narrow ? b.cast(given, DType::i32) : given;
  const Val y = functions::up_to(x, call.number("threshold"), b.like(x, call.number("value")), x);
  return narrow ? b.cast(y, type) : y;
}
}  // namespace

AtenOp aten_threshold() {
  return {.schemas = {"threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
                      "threshold_(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor(a!)"},
          .summary = "x where it is above threshold, value elsewhere",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"x(2,3,4), 0.1, -1.0", "e(28), 0.5, 2", "i(-9,9,12), 2, -7", "u8(0,256,24), 100, 7",
                     "i8(-9,9,12), 2, -7"}};
}
}  // namespace tosaic
