// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/mask.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

// Operands without zero points, constants of 16 bits; their scales multiply.
Vals lower(QuantisedCall& call) {
  for (auto& v : call.operands) {
    if (is_quantised(v)) {
      v = call.b.as_i32(*v);
    } else if (v && v->dtype() == DType::boolean) {
      v = reals_of_mask(*v, DType::i32);
    } else if (is_real(v)) {
      const double largest = call.largest_magnitude(*v);
      v = call.b.as_i32(call.quantised_constant(*v, DType::i16, largest > 0 ? largest / 32767 : 1.0, 0));
    }
  }
  return call.as_declared();
}

}  // namespace

constinit const QuantisationRule Rule::product{.name = "product", .lower = lower, .is_linear = true};

}  // namespace tosaic
