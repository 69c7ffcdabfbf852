// SPDX-License-Identifier: Apache-2.0
// Operators that move elements without looking at them, as strides: what TRANSPOSE, SLICE, REVERSE, TILE, CONCAT and
// PAD have in common.
#pragma once
#include <optional>
#include <vector>

#include "ir/extent.h"
#include "ops/definitions/tosa_op.h"
#include "ops/definitions/walk.h"

namespace tosaic::plan {

// Amounts are numbers, or Dims where sizes may be symbolic.
template <class Amount>
struct MoveOf;

template <>
struct MoveOf<std::int64_t> {
  using Walk = tosa::Walk;
  ValueId from = no_value;
  std::vector<std::int64_t> dims;  // of the walk
  Walk read, write;
  // Elements that stand in a row do so in the operand and in the result.
  bool is_run() const;
  // A dense operand that becomes a dense part of the result: it could be computed there.
  bool is_dense_part() const { return is_run() && read.offset == 0; }
};
template <>
struct MoveOf<Dim> {
  struct Walk {
    Dim offset;
    std::vector<Dim> strides;
  };
  ValueId from = no_value;
  std::vector<Dim> dims;
  Walk read, write;
};

template <class Amount>
struct MovementOf {
  std::vector<MoveOf<Amount>> moves;  // one, or one per operand (CONCAT); their places in the result do not overlap
  ValueId fill = no_value;            // PAD: the constant of one element that is everywhere else
};
using Move = MoveOf<std::int64_t>;
using Movement = MovementOf<std::int64_t>;
using SymbolicMove = MoveOf<Dim>;
using SymbolicMovement = MovementOf<Dim>;

// None: another operator, or one whose amounts are not known yet (EXT-DYNAMIC).
std::optional<Movement> movement_of(const Graph& graph, const Node& node);
std::optional<SymbolicMovement> symbolic_movement_of(const Graph& graph, const Node& node);

}  // namespace tosaic::plan
