// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/lowering/exact.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (!promotion::is_real(x)) return x;
  if (call.overload() == "default") return functions::round_half_even(x);
  const auto decimals = call.integer("decimals");
  const double ten = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  // As PyTorch divides: 25 is 2.5 tens and no more, and 3 tenths are the float that is nearest to 0.3.
  const auto divided = [&](Val v) {
    return v.type().quantised() ? b.scaled(v, 1 / ten) : functions::nearest_quotient(v, b.like(v, ten));
  };
  const auto rounded = [](Val v) { return functions::round_half_even(functions::in_binary_units(v)); };
  if (decimals < 0) return b.scaled(rounded(divided(x)), ten);
  return divided(rounded(b.scaled(x, ten)));
}
}  // namespace

AtenOp aten_round() {
  return {
      .schemas = {"round(Tensor self) -> Tensor", "round.decimals(Tensor self, *, int decimals) -> Tensor",
                  "round_(Tensor(a!) self) -> Tensor(a!)",
                  "round_.decimals(Tensor(a!) self, *, int decimals) -> Tensor(a!)"},
      .summary = "the nearest integer, ties to even; or the same to a number of decimals",
      .rule = Rule::pointwise,
      .lower = {lower},
      .domain = {"u(-5,5,2,3,4)", "s(-4,4,17)", "e(28)", "i(-9,9,12)",
                 "decimals: u(-500,500,24), decimals=-1 # half=off: halves of tens, of bf16, are none in double times "
                 "an f32 of 1/10",
                 "decimals: u(-5,5,24), decimals=2 # half=off: one unit of the rounded product is many of the format"}};
}
}  // namespace tosaic
