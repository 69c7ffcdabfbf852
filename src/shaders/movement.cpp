// SPDX-License-Identifier: Apache-2.0
// Elements moved by strides, as they are.
#include "plan/movement.h"

#include "shaders/elements.h"
#include "shaders/kernels.h"
#include "shaders/steps.h"
#include "shaders/strides.h"

namespace tosaic::shaders {
namespace {

// Does the tier move four elements of a type at once?
bool by_quads(const Work& work, ValueId v) { return reads_texels(work.tier) && has_quads(work.graph[v].type.dtype); }

// Four neighbours of what is written; nullopt: there are none. What is read may lie apart.
MadeList quads_moved(const Work& work, const plan::SymbolicMove& move, ValueId to) {
  const Walk walk(move.dims, {move.read.strides, move.write.strides});
  if (!by_quads(work, to) || walk.dims().empty() || !is_multiple(walk.dims().back(), 4) || !walk.is_quad(1) ||
      !is_multiple(move.write.offset, 4))
    return std::nullopt;
  Kernel kernel(work, "move", floor_div(product_of(move.dims), 4));
  const Value two = kernel.integer(2);
  Positions positions(kernel, walk, kernel.index() << two);
  const Value read = positions.of(0) + kernel.param(move.read.offset);
  const Value write = positions.of(1) + kernel.param(move.write.offset);
  Quad quad;
  if (by_quads(work, move.from) && walk.is_quad(0) && is_multiple(move.read.offset, 4)) {
    quad = kernel.load_quad(kernel.input(move.from, true), shift_right_unsigned(read, two));
  } else {
    const Buffer input = kernel.input(move.from);
    const Value apart = kernel.param(walk.step(0));
    for (int i = 0; i < 4; ++i)
      quad[static_cast<std::size_t>(i)] = kernel.load(input, i == 0 ? read : read + apart * i);
  }
  kernel.store_quad(kernel.output(to, true), shift_right_unsigned(write, two), quad);
  return one(kernel);
}

MadeList moved(const Work& work, const plan::SymbolicMove& move, ValueId to) {
  if (MadeList made = quads_moved(work, move, to)) return made;
  const Elements all(work, product_of(move.dims));
  Kernel kernel(work, "move", all.invocations());
  const Buffer input = kernel.input(move.from), output = kernel.output(to);
  kernel.for_each(all, [&](Value index) {
    Positions positions(kernel, Walk(move.dims, {move.read.strides, move.write.strides}), index);
    const Value read = positions.of(0) + kernel.param(move.read.offset);
    const Value write = positions.of(1) + kernel.param(move.write.offset);
    kernel.copy(input, read, output, write);
  });
  return one(kernel);
}

// From one element, everywhere.
MadeList filled(const Work& work, ValueId with, ValueId to) {
  const Dim elements = elements_of(work.graph[to].type.shape);
  const bool quads = by_quads(work, to);
  Kernel kernel(work, "fill", quads ? ceil_div(elements, 4) : elements);
  const Buffer input = kernel.input(with);
  if (quads) {
    const Value fill = kernel.load(input, kernel.integer(0));
    kernel.store_quad(kernel.output(to, true), kernel.index(), {fill, fill, fill, fill});
  } else {
    kernel.copy(input, kernel.integer(0), kernel.output(to), kernel.index());
  }
  return one(kernel);
}

bool writes_in_order(const plan::SymbolicMove& move) {
  Dim unit = 1;
  for (std::size_t d = move.dims.size(); d-- > 0; unit = unit * move.dims[d])
    if (move.dims[d] != Dim(1) && move.write.strides[d] != unit) return false;
  return move.write.offset == Dim(0);
}

bool append(std::vector<Made>& all, MadeList more) {
  if (!more) return false;
  for (Made& made : *more) all.push_back(std::move(made));
  return true;
}

}  // namespace

MadeList make_moved_elementwise(const Work& work, const plan::Expression& expression, const Node& node) {
  if (!shares_memory(work.tier) || is_view(node)) return std::nullopt;
  const auto movement = plan::symbolic_movement_of(work.graph, node);
  if (!movement || movement->moves.size() != 1 || movement->fill != no_value) return std::nullopt;
  const plan::SymbolicMove& move = movement->moves[0];
  const ValueId to = node.outputs[0];
  const Dim elements = product_of(move.dims);
  if (move.from != expression.output || elements != elements_of(work.graph[to].type.shape) ||
      elements != elements_of(expression.shape) || work.graph[to].type.dtype != work.graph[move.from].type.dtype)
    return std::nullopt;
  // Bytes are stored as words.
  const bool quads = storage_size(work.graph[to].type.dtype) == 1 && is_multiple(elements, 4) && writes_in_order(move);
  const Elements all(work, quads ? floor_div(elements, 4) : elements);
  Kernel kernel(work, "elementwise", all.invocations());
  const Kernel::MoreParams more(kernel);
  const Buffer output = kernel.output(to, quads);
  const auto element = [&](Value index, bool in_order) {
    Positions positions(kernel, Walk(move.dims, {move.read.strides, move.write.strides}), index);
    const Value read = positions.of(0) + kernel.param(move.read.offset);
    const Value write = in_order ? index : positions.of(1) + kernel.param(move.write.offset);
    return std::pair(write, evaluate(kernel, expression, read));
  };
  kernel.for_each(all, [&](Value index) {
    if (!quads) {
      const auto [write, made] = element(index, false);
      return kernel.store(output, write, made);
    }
    Quad four;
    kernel.repeat(4, [&](int q) { four[static_cast<std::size_t>(q)] = element(index * 4 + q, true).second; });
    kernel.store_quad(output, index, four);
  });
  return one(kernel);
}

MadeList make_movement(const Work& work, const Node& node) {
  const auto movement = plan::symbolic_movement_of(work.graph, node);
  if (!movement) return std::nullopt;
  std::vector<Made> all;
  if (movement->fill != no_value && !append(all, filled(work, movement->fill, node.outputs[0]))) return std::nullopt;
  for (const plan::SymbolicMove& move : movement->moves)
    if (product_of(move.dims) != Dim(0) && !append(all, moved(work, move, node.outputs[0]))) return std::nullopt;
  return all;
}

MadeList make_copy(const Work& work, ValueId from, ValueId to) {
  const Dim elements = elements_of(work.graph[to].type.shape);
  const bool quads = by_quads(work, from) && by_quads(work, to);
  Kernel kernel(work, "copy", quads ? ceil_div(elements, 4) : elements);
  const Buffer input = kernel.input(from, quads), output = kernel.output(to, quads);  // in this order
  if (quads)
    kernel.store_quad(output, kernel.index(), kernel.load_quad(input, kernel.index()));
  else
    kernel.copy(input, kernel.index(), output, kernel.index());
  return one(kernel);
}

}  // namespace tosaic::shaders
