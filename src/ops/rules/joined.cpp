// SPDX-License-Identifier: Apache-2.0
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

Vals lower(QuantisedCall& call) {
  const TensorType& to = call.declared.at(0);
  for (auto& v : call.operands) {
    if (is_quantised(v))
      v = call.b.rescale(*v, to.with(v->shape()));
    else if (is_real(v))
      v = call.with_type_of(*v, to);
  }
  return call.as_declared();
}

}  // namespace

constinit const QuantisationRule Rule::joined{.name = "joined", .lower = lower, .joins_operands = true};

}  // namespace tosaic
