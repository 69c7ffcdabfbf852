// SPDX-License-Identifier: Apache-2.0
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {

constinit const QuantisationRule Rule::index{
    .name = "index",
    .lower = [](QuantisedCall& call) { return call.plain(); },
    .is_unscaled = true,
};

}  // namespace tosaic
