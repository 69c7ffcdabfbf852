// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {

constinit const QuantisationRule Rule::inside{
    .name = "inside",
    .lower = [](QuantisedCall& call) -> Vals {
      call.b.refuse("quantise.composite",
                    fmt::format("{} is a composite whose inner tensors have no scales", call.node.op));
    },
    .has_integer_form = false,
    .is_composite = true,
};

}  // namespace tosaic
