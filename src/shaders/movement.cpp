// SPDX-License-Identifier: Apache-2.0
// Elements moved by strides, as they are.
#include "plan/movement.h"

#include <numeric>

#include "shaders/kernels.h"
#include "shaders/strides.h"

namespace tosaic::shaders {
namespace {

std::uint64_t count(const std::vector<std::int64_t>& dims) {
  std::uint64_t all = 1;
  for (std::int64_t d : dims) all *= static_cast<std::uint64_t>(d);
  return all;
}

MadeList moved(const Work& work, const plan::Move& move, ValueId to) {
  const Elements all(work, count(move.dims));
  Kernel kernel(work, "move", all.invocations());
  const Buffer input = kernel.input(move.from), output = kernel.output(to);
  kernel.for_each(all, [&](Value index) {
    Positions positions(kernel, move.dims, {move.read.strides, move.write.strides}, index);
    const Value read = positions.of(0) + kernel.param(move.read.offset);
    const Value write = positions.of(1) + kernel.param(move.write.offset);
    kernel.copy(input, read, output, write);
  });
  return one(kernel);
}

MadeList filled(const Work& work, ValueId with, ValueId to) {
  Kernel kernel(work, "fill", static_cast<std::uint64_t>(work.graph[to].type.shape.elements()));
  const Buffer input = kernel.input(with);
  kernel.copy(input, kernel.integer(0), kernel.output(to), kernel.index());
  return one(kernel);
}

bool append(std::vector<Made>& all, MadeList more) {
  if (!more) return false;
  for (Made& made : *more) all.push_back(std::move(made));
  return true;
}

}  // namespace

MadeList make_movement(const Work& work, const Node& node) {
  const auto movement = plan::movement_of(work.graph, node);
  if (!movement) return std::nullopt;
  std::vector<Made> all;
  if (movement->fill != no_value && !append(all, filled(work, movement->fill, node.outputs[0]))) return std::nullopt;
  for (const plan::Move& move : movement->moves)
    if (count(move.dims) > 0 && !append(all, moved(work, move, node.outputs[0]))) return std::nullopt;
  return all;
}

MadeList make_copy(const Work& work, ValueId from, ValueId to) {
  Kernel kernel(work, "copy", static_cast<std::uint64_t>(work.graph[to].type.shape.elements()));
  const Buffer input = kernel.input(from);  // the first binding
  kernel.copy(input, kernel.index(), kernel.output(to), kernel.index());
  return one(kernel);
}

}  // namespace tosaic::shaders
