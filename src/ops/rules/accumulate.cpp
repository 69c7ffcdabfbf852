// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

// The builder's int8 forms, which rescale their accumulators to the wanted type at once.
Vals lower(QuantisedCall& call) {
  Builder& b = call.b;
  for (std::size_t i = 0; i < call.operands.size() && i < 2; ++i)
    if (is_real(call.operands[i]))
      b.refuse("quantise.float-operand",
               fmt::format("operand {} of {} is float, the other is quantised", i, call.node.op));
  Builder::Scope inside(b);
  inside->wanted = call.declared.at(0);
  return call.as_declared();
}

}  // namespace

constinit const QuantisationRule Rule::accumulate{.name = "accumulate", .lower = lower, .accumulates = true};

}  // namespace tosaic
