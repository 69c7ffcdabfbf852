// SPDX-License-Identifier: Apache-2.0
// The integer arithmetic of a node, from its operator's Rule and the scales on its types. Rules never look at
// operator names: what they wrap is the operator's one lowering.
#pragma once
#include "ops/op.h"

namespace tosaic {

// `declared`: the node's output types, with scales where the quantiser or PT2E put them. Throws Refusal.
Vals lower_node(Builder& builder, const Node& node, std::vector<std::optional<Val>> operands,
                const std::vector<TensorType>& declared);

}  // namespace tosaic
