// SPDX-License-Identifier: Apache-2.0
// Calls on half-precision floats (f16, bf16). PyTorch rounds to 16 bits where a call ends and computes in f32 inside.
// So does a lowering: as it stands where it rounds once on any way from an operand to a result, else on its operands as
// f32, with its results cast back. Which of the two is read off the TOSA nodes that it makes.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "ops/builder.h"

namespace tosaic::half_precision {

// One call, lowered as its operator's file says.
using Lower = std::function<std::vector<Val>(std::vector<std::optional<Val>> operands, const Attrs& attrs)>;

// `lower` may be called several times; what it made in vain is gone from the graph.
std::vector<Val> lowered(Builder& builder, const std::vector<std::optional<Val>>& operands, const Attrs& attrs,
                         const Lower& lower);

// While a call's half-precision values are f32: the half-precision tensor that x is, where elements of theirs have only
// been converted and moved. TOSA's products in half precision are sums in f32, so products of these are as good, and
// weights stay what they are.
std::optional<Val> f16_of(Val x);

}  // namespace tosaic::half_precision
