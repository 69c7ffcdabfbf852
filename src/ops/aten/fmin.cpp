// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  Val x = p.values[0], y = p.values[1], z = b.minimum(x, y);
  if (!is_float(x.dtype())) return p.finished(z);
  z = b.select(functions::equal(y, y), z, x);
  return p.finished(b.select(functions::equal(x, x), z, y));
}
}  // namespace

AtenOp aten_fmin() {
  return {.schemas = {"fmin(Tensor self, Tensor other) -> Tensor"},
          .summary = "the smaller of two elements; a number wins over NaN",
          .rule = Rule::joined,
          .lower = {lower},
          .domain = {"x(2,3,4), x(3,1)", "e(28), x()", "n(8), n(2,1)", "i(-9,9,12), i(-9,9,12)"}};
}
}  // namespace tosaic
