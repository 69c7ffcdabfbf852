// SPDX-License-Identifier: Apache-2.0
// What a chain computes of one i8 operand alone is a table of 256 entries, however many nodes it is.
#pragma once
#include <optional>
#include <vector>

#include "plan/expression.h"

namespace tosaic::cpu {

struct ByteFunction {
  int operand;                       // as in Expression::Call
  std::vector<std::uint32_t> nodes;  // that compute the call's result from it, ascending
  std::vector<std::int8_t> table;    // results for -128 .. 127
};

// A call as a function of one i8 operand. Nothing where it is not one, or where a table is no gain: for one node, and
// for few elements.
std::optional<ByteFunction> byte_function(const Graph& graph, const plan::Expression& expression, std::size_t call);

}  // namespace tosaic::cpu
