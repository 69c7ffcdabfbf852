// SPDX-License-Identifier: Apache-2.0
#include "plan/movement.h"

namespace tosaic::plan {
namespace {

using Dims = std::vector<std::int64_t>;

// All of an operand to where the result begins.
Move whole(const Graph& graph, ValueId from, const Shape& result) {
  const Shape& shape = graph[from].type.shape;
  return {from, shape.sizes(), tosa::row_major(shape), tosa::row_major(result)};
}

Movement concat(const Graph& graph, const Node& node, const Shape& result) {
  const auto axis = static_cast<std::size_t>(node.attrs.get<std::int64_t>("axis"));
  Movement movement;
  std::int64_t at = 0;
  for (ValueId v : node.inputs) {
    Move& part = movement.moves.emplace_back(whole(graph, v, result));
    part.write.offset = at * part.write.strides[axis];
    at += part.dims[axis];
  }
  return movement;
}

void transpose(Move& move, const Dims& permutation, const Shape& result) {
  const Dims strides = move.read.strides;
  move.dims = result.sizes();
  for (std::size_t d = 0; d < permutation.size(); ++d)
    move.read.strides[d] = strides[static_cast<std::size_t>(permutation[d])];
}

void reverse(Move& move, std::size_t axis) {
  move.read.offset = (move.dims[axis] - 1) * move.read.strides[axis];
  move.read.strides[axis] = -move.read.strides[axis];
}

// Each dim becomes two: how often, and the dim itself.
void tile(Move& move, const Shape& result) {
  const Move once = move;
  move.dims.clear(), move.read.strides.clear(), move.write.strides.clear();
  for (std::size_t d = 0; d < once.dims.size(); ++d) {
    const std::int64_t size = once.dims[d];
    move.dims.insert(move.dims.end(), {result.size(static_cast<int>(d)) / size, size});
    move.read.strides.insert(move.read.strides.end(), {0, once.read.strides[d]});
    move.write.strides.insert(move.write.strides.end(), {once.write.strides[d] * size, once.write.strides[d]});
  }
}

}  // namespace

bool Move::is_piece() const {
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1 && read.strides[d] != write.strides[d]) return false;
  return read.offset == 0;
}

std::optional<Movement> movement_of(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.inputs.empty()) return std::nullopt;
  const tosa::View view(graph, node);
  const Shape& result = view.out().shape;
  if (node.op == "tosa.concat") return concat(graph, node, result);
  Movement movement;
  Move& move = movement.moves.emplace_back(whole(graph, node.inputs[0], result));
  if (node.op == "tosa.transpose") {
    transpose(move, view.ints("perms"), result);
  } else if (node.op == "tosa.reverse") {
    reverse(move, static_cast<std::size_t>(view.integer("axis")));
  } else if (node.op == "tosa.tile") {
    tile(move, result);
  } else if (node.op == "tosa.slice") {
    const auto start = view.constant_integers(1);
    if (!start) return std::nullopt;
    move.dims = result.sizes();
    for (std::size_t d = 0; d < start->size(); ++d) move.read.offset += (*start)[d] * move.read.strides[d];
  } else if (node.op == "tosa.pad") {
    const auto padding = view.constant_integers(1);
    if (!padding || !graph[node.inputs[2]].is_constant()) return std::nullopt;
    for (std::size_t d = 0; d < move.dims.size(); ++d) move.write.offset += (*padding)[2 * d] * move.write.strides[d];
    movement.fill = node.inputs[2];
  } else {
    return std::nullopt;
  }
  return movement;
}

}  // namespace tosaic::plan
