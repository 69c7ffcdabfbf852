// SPDX-License-Identifier: Apache-2.0
#include "plan/movement.h"

#include "ir/tosa_operators.h"

namespace tosaic::plan {
namespace {

using Dims = std::vector<std::int64_t>;

template <class Amount>
std::vector<Amount> sizes_of(const Shape& shape) {
  if constexpr (std::is_same_v<Amount, Dim>)
    return shape.dims();
  else
    return shape.sizes();
}

template <class Amount>
typename MoveOf<Amount>::Walk dense(const Shape& shape) {
  if constexpr (std::is_same_v<Amount, Dim>)
    return {0, row_major_strides(shape)};
  else
    return tosa::row_major(shape);
}

// All of an operand to where the result begins.
template <class Amount>
MoveOf<Amount> whole(const Graph& graph, ValueId from, const Shape& result) {
  const Shape& shape = graph[from].type.shape;
  return {from, sizes_of<Amount>(shape), dense<Amount>(shape), dense<Amount>(result)};
}

template <class Amount>
MovementOf<Amount> concat(const Graph& graph, const Node& node, const Shape& result) {
  const auto axis = static_cast<std::size_t>(node.attrs.get<std::int64_t>("axis"));
  MovementOf<Amount> movement;
  Amount at = 0;
  for (ValueId v : node.inputs) {
    MoveOf<Amount>& part = movement.moves.emplace_back(whole<Amount>(graph, v, result));
    part.write.offset = at * part.write.strides[axis];
    at = at + part.dims[axis];
  }
  return movement;
}

template <class Amount>
void transpose(MoveOf<Amount>& move, const Dims& permutation, const Shape& result) {
  const std::vector<Amount> strides = move.read.strides;
  move.dims = sizes_of<Amount>(result);
  for (std::size_t d = 0; d < permutation.size(); ++d)
    move.read.strides[d] = strides[static_cast<std::size_t>(permutation[d])];
}

template <class Amount>
void reverse(MoveOf<Amount>& move, std::size_t axis) {
  move.read.offset = (move.dims[axis] - Amount(1)) * move.read.strides[axis];
  move.read.strides[axis] = Amount(0) - move.read.strides[axis];
}

std::int64_t times(std::int64_t all, std::int64_t of) { return all / of; }
Dim times(const Dim& all, const Dim& of) { return floor_div(all, of); }

// Each dim becomes two: how often, and the dim itself.
template <class Amount>
void tile(MoveOf<Amount>& move, const Shape& result) {
  const MoveOf<Amount> once = move;
  const std::vector<Amount> all = sizes_of<Amount>(result);
  move.dims.clear(), move.read.strides.clear(), move.write.strides.clear();
  for (std::size_t d = 0; d < once.dims.size(); ++d) {
    const Amount& size = once.dims[d];
    move.dims.insert(move.dims.end(), {times(all[d], size), size});
    move.read.strides.insert(move.read.strides.end(), {Amount(0), once.read.strides[d]});
    move.write.strides.insert(move.write.strides.end(), {once.write.strides[d] * size, once.write.strides[d]});
  }
}

// Where a SLICE begins; nothing: nobody knows yet.
template <class Amount>
std::optional<std::vector<Amount>> start_of(const tosa::View& view) {
  if constexpr (std::is_same_v<Amount, Dim>)
    if (const Attr* attr = view.node().attrs.find(symbolic_start)) {
      std::vector<Dim> start;
      for (const SymbolicArgument& a : std::get<std::vector<SymbolicArgument>>(*attr)) start.push_back(*a.size);
      return start;
    }
  const auto numbers = view.constant_integers(1);
  if (numbers) return std::vector<Amount>(numbers->begin(), numbers->end());
  return std::nullopt;
}

template <class Amount>
std::optional<MovementOf<Amount>> movement(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty()) return std::nullopt;
  const tosa::View view(graph, node);
  const Shape& result = view.out().shape;
  if (node.op == tosa::op::concat) return concat<Amount>(graph, node, result);
  const auto is = [&](auto... names) { return ((node.op == names) || ...); };
  if (!is(tosa::op::transpose, tosa::op::reverse, tosa::op::tile, tosa::op::slice, tosa::op::pad)) return std::nullopt;
  MovementOf<Amount> movement;
  MoveOf<Amount>& move = movement.moves.emplace_back(whole<Amount>(graph, node.inputs[0], result));
  if (node.op == tosa::op::transpose) {
    transpose(move, view.ints("perms"), result);
  } else if (node.op == tosa::op::reverse) {
    reverse(move, static_cast<std::size_t>(view.integer("axis")));
  } else if (node.op == tosa::op::tile) {
    tile(move, result);
  } else if (node.op == tosa::op::slice) {
    const auto start = start_of<Amount>(view);
    if (!start) return std::nullopt;
    move.dims = sizes_of<Amount>(result);
    for (std::size_t d = 0; d < start->size(); ++d)
      move.read.offset = move.read.offset + (*start)[d] * move.read.strides[d];
  } else {
    const auto padding = view.constant_integers(1);
    if (!padding || !graph[node.inputs[2]].is_constant()) return std::nullopt;
    for (std::size_t d = 0; d < move.dims.size(); ++d)
      move.write.offset = move.write.offset + Amount((*padding)[2 * d]) * move.write.strides[d];
    movement.fill = node.inputs[2];
  }
  return movement;
}

}  // namespace

bool Move::is_run() const {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1 && read.strides[d] != write.strides[d]) return false;
  return true;
}

std::optional<Movement> movement_of(const Graph& graph, const Node& node) {
  return movement<std::int64_t>(graph, node);
}
std::optional<SymbolicMovement> symbolic_movement_of(const Graph& graph, const Node& node) {
  return movement<Dim>(graph, node);
}

}  // namespace tosaic::plan
