// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them, as strides: what TRANSPOSE, SLICE, REVERSE, TILE, CONCAT and
// PAD have in common.
#pragma once
#include <optional>
#include <vector>

#include "ops/tosa_op.h"
#include "ops/tosa_walk.h"

namespace tosaic::plan {

struct Move {
  ValueId from = no_value;
  std::vector<std::int64_t> dims;  // of the walk
  tosa::Walk read, write;
  // A dense operand that becomes a dense piece of the result: it could be computed there.
  bool is_piece() const;
};

struct Movement {
  std::vector<Move> moves;  // one, or one per operand (CONCAT); their places in the result do not overlap
  ValueId fill = no_value;  // PAD: the constant of one element that is everywhere else
};

// None: another operator, or one whose amounts are not known yet (EXT-DYNAMIC).
std::optional<Movement> movement_of(const Graph& graph, const Node& node);

}  // namespace tosaic::plan
