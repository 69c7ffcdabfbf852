// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  Val x = promotion::as_float(call.tensor("self"));
  return functions::negation(functions::equal(x, x));
}
}  // namespace

AtenOp aten_isnan() {
  return {.schemas = {"isnan(Tensor self) -> Tensor"},
          .summary = "true where x is NaN",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {
              "e(28)",
              "x(2,3) # integer=target.unsupported: quantised values are always finite, so that the test stays float",
              "i(0,3,4) # integer=target.unsupported: integers become floats for the question"}};
}
}  // namespace tosaic
