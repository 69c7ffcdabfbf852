// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  return functions::equal(b.unary(tosa::op::abs, x), b.like(x, std::numeric_limits<double>::infinity()));
}
}  // namespace

AtenOp aten_isinf() {
  return {.schemas = {"isinf(Tensor self) -> Tensor"},
          .summary = "true where x is infinite",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {
              "e(28)",
              "x(2,3) # integer=target.unsupported: quantised values are always finite, so that the test stays float",
              "i(0,3,4) # integer=target.unsupported: integers become floats for the question"}};
}
}  // namespace tosaic
