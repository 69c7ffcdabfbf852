// SPDX-License-Identifier: Apache-2.0
// PyTorch's uint8, which TOSA has no type for: to a target they are the same bytes as i8, and the numbers that they
// stand for are made where a program converts them. Our own executors have the type.
#pragma once
#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

// In a graph of tosa.* nodes: every u8 becomes i8. Values keep their numbers; what computes with u8 beyond moving them
// and converting them stays as it is, and no target takes it.
void take_unsigned_as_bytes(Graph& graph, const tosa::Spec& spec);

}  // namespace tosaic
