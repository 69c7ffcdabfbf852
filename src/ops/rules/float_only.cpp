// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {

constinit const QuantisationRule Rule::float_only{
    .name = "float_only",
    .lower = [](QuantisedCall& call) -> Vals {
      call.b.refuse("quantise.float-only", fmt::format("{} has no integer form", call.node.op));
    },
    .has_integer_form = false,
};

}  // namespace tosaic
