// SPDX-License-Identifier: Apache-2.0
// One node, lowered: as floats or integers by its operator's one lowering, and between them, where there are scales on
// its types, by the operator's rule (ops/rules).
#pragma once
#include "ops/op.h"

namespace tosaic {

// `declared`: the node's output types, with scales where the quantiser or PT2E put them. Throws Refusal.
Vals lower_node(Builder& builder, const Node& node, std::vector<std::optional<Val>> operands,
                const std::vector<TensorType>& declared);

}  // namespace tosaic
