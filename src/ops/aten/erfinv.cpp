// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// x times a function of w = -log(1 - x^2) that grows like 1 / x * sqrt(w): two polynomials, fitted to 7e-9 and 3e-8.
Vals lower(Builder& b, const Call& call) {
  Val given = promotion::as_float(call.tensor("self")), x = functions::widened(given);
  Val one = b.like(x, 1.0);
  Val w = b.negate(b.unary(tosa::op::log, b.mul(b.sub(one, x), b.add(x, one))));
  Val near = functions::polynomial(b.sub(w, 2.5), {1.50140936041, 0.246640289504, -0.00417739396314, -0.00125275099609,
                                                   0.000218351260398, -4.95700706746e-06, -3.46471457357e-06,
                                                   4.64594922348e-07, 2.34136277588e-08, -8.66377377132e-09});
  // Below 5 the other one counts: its argument stays a number.
  Val far = functions::polynomial(
      b.sub(functions::square_root(b.maximum(w, one)), 3.0),
      {2.83297683419, 1.00167468985, 0.0094434730068, -0.00763320402441, 0.0057012255827, -0.00361568121431,
       0.00145054625685, -2.23909146235e-05, -0.000283689647225, 9.20645455743e-05});
  Val y = b.mul(x, b.select(functions::greater(w, 5.0), far, near));
  // At the ends the logarithm is infinite, and so is the result.
  Val end = functions::equal(b.unary(tosa::op::abs, x), one);
  return functions::narrowed_to(b.select(end, b.mul(x, w), y), given.dtype());
}
}  // namespace

AtenOp aten_erfinv() {
  return {.schemas = {"erfinv(Tensor self) -> Tensor", "erfinv_(Tensor(a!) self) -> Tensor(a!)",
                      "special_erfinv(Tensor self) -> Tensor"},
          .summary = "the inverse of the error function",
          .rule = Rule::pointwise,
          .lower = {lower},
          .domain = {"s(-0.99,0.99,99)", "u(-1,1,2,3,4)", "s(-1,1,9)",
                     "s(0.999,0.9999999,33) # half=off: f16 has few numbers there", "s(-1.5,1.5,13)", "e(28)",
                     "i(-2,3,6)", "s(-1e-5,1e-5,9)", "special_erfinv.default: s(-0.9,0.9,7)"}};
}
}  // namespace tosaic
