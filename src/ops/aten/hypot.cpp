// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The larger leg times sqrt(1 + (smaller / larger)^2): the squares themselves would overflow.
Vals lower(Builder& b, const Call& call) {
  auto p = promotion::promote(b, call, {"self", "other"});
  if (!is_float(p.result)) b.refuse("aten.hypot.dtype", "hypot takes floats");
  Val x = b.unary(tosa::op::abs, functions::widened(p.values[0])),
      y = b.unary(tosa::op::abs, functions::widened(p.values[1]));
  Val large = b.maximum(x, y), small = b.minimum(x, y), zero = b.like(x, 0.0);
  Val infinity = b.like(x, std::numeric_limits<double>::infinity());
  // Scaled so that no reciprocal is beyond the smallest numbers, which executors may take for 0.
  Val huge = functions::greater(large, 0x1p100), tiny = functions::less(large, 0x1p-100);
  Val up = b.select(tiny, b.like(x, 0x1p25), b.like(x, 1.0)), scale = b.select(huge, b.like(x, 0x1p-27), up);
  Val a = b.mul(large, scale), c = b.mul(small, scale);
  Val ratio = b.mul(c, b.unary(tosa::op::reciprocal, a));
  Val length = b.mul(large, functions::square_root(b.add(b.mul(ratio, ratio), 1.0)));
  length = b.select(functions::equal(large, zero), large, length);
  Val infinite = functions::either(functions::equal(x, infinity), functions::equal(y, infinity));
  return p.finished(b.select(infinite, b.broadcast_to(infinity, length.shape()), length));
}
}  // namespace

AtenOp aten_hypot() {
  return {
      .schemas = {"hypot(Tensor self, Tensor other) -> Tensor", "hypot_(Tensor(a!) self, Tensor other) -> Tensor(a!)"},
      .summary = "sqrt(self^2 + other^2) without overflow",
      .rule = Rule::magnitude,
      .lower = {lower},
      .domain = {"x(2,3,4), x(2,3,4)", "x(2,3,4), x(3,1)", "f(28), f(28)",
                 "u(1e30,3e38,12), u(1e30,2e38,12) # half=off: f16 cannot hold them", "n(8), x()",
                 "u(-1e-30,1e-30,12), u(-1e-30,1e-30,12)"}};
}
}  // namespace tosaic
