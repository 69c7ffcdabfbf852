// SPDX-License-Identifier: Apache-2.0
// Branches and loops that nobody wrote out, as TOSA's COND_IF and WHILE_LOOP: their bodies are lowered as graphs of
// their own.
#pragma once
#include "ops/op.h"

namespace tosaic {

// A node with bodies: operands {condition, list...} of a branch, {carried..., others...} of a loop, which its bodies
// take in this order. Throws Refusal.
Vals lower_control_flow(Builder& builder, const Node& node, const std::vector<std::optional<Val>>& operands,
                        const std::vector<TensorType>& declared);

}  // namespace tosaic
