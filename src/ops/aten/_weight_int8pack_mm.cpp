// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/packed_weight.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val given = call.tensor("self"), x = functions::widened(given);  // the weights have no place to round in
  Val weight = eight_bit_weight(call.tensor("mat2"), b.cast(call.tensor("scales"), x.dtype()));
  return functions::narrowed_to(b.aten(aten::op::linear, {x, weight, std::nullopt}), given.dtype());
}
}  // namespace

AtenOp aten__weight_int8pack_mm() {
  return {.schemas = {"_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor"},
          .summary = "x W^T with weights of 8 bits, a scale for each row of W",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,16), const(i8(-128,127,4,16)), const(u(0.01,0.1,4))",
                     "x(3,5), const(i8(-9,9,2,5)), const(x(2))"}};
}
}  // namespace tosaic
