// SPDX-License-Identifier: Apache-2.0
// A function of one tensor without its table: the operator's own float lowering, in whose words (sums, products,
// bounds, whole numbers) i32 can be computed as well. Knees and jumps are where they are; a table of 16 bits has lines
// across them.
#pragma once
#include <optional>

#include "ops/rules/quantised_call.h"

namespace tosaic {

// Nothing where the lowering has a word for floats alone, where no unit holds what it computes, or where the target
// does not take it.
std::optional<Vals> in_integers(const QuantisedCall& call);

}  // namespace tosaic
