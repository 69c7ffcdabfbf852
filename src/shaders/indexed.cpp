// SPDX-License-Identifier: Apache-2.0
// GATHER and SCATTER. An index outside the tensor is unpredictable in TOSA; here it is held to the tensor, or writes
// nothing.
#include "shaders/kernels.h"

namespace tosaic::shaders {

MadeList make_gather(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& values = view.in(0).shape;
  // Four channels at a time where views of both show them so.
  const bool quads = is_multiple(values[2], 4) && end.has_quads(work.graph, values[2]) &&
                     (has_quads(view.in(0).dtype) || !reads_texels(work.tier));
  const std::int64_t at_once = quads ? 4 : 1;
  Kernel s(work, "gather", floor_div(elements_of(view.out().shape), at_once));
  const Value channels = s.param(floor_div(values[2], at_once)), rows = s.param(values[1]),
              width = s.param(view.in(1).shape[1]);
  const Value at = s.index() / channels;  // in the indices
  const Value asked = s.load(s.input(node.inputs[1]), at);
  const Value row = smallest(largest(asked, s.integer(0)), rows - 1);
  const Value read = (at / width * rows + row) * channels + s.index() % channels;
  const Buffer input = s.input(node.inputs[0], quads);
  if (quads)
    end.store_finished(s, s.index(), end.finished_quad(s, s.index(), s.load_quad(input, read)));
  else
    end.store(s, s.index(), s.load(input, read));
  return one(s);
}

// The values as they are, then the rows that replace some. Nothing is fused after it.
MadeList make_scatter(const Work& work, const Node& node, const Finish& end) {
  if (end.output() != end.root()) return std::nullopt;
  const tosa::View view(work.graph, node);
  const Shape &values = view.in(0).shape, &input = view.in(2).shape;
  MadeList all = make_copy(work, node.inputs[0], node.outputs[0]);
  Kernel s(work, "scatter", elements_of(input));
  const Value channels = s.param(values[2]), rows = s.param(values[1]), width = s.param(input[1]);
  const Value at = s.index() / channels;
  const Value row = s.load(s.input(node.inputs[1]), at);
  s.when(below_unsigned(row, rows), [&] {
    const Value write = (at / width * rows + row) * channels + s.index() % channels;
    const Buffer rows_given = s.input(node.inputs[2]);
    s.copy(rows_given, s.index(), s.output(node.outputs[0]), write);
  });
  if (!s.fits() || !all) return std::nullopt;
  all->push_back(s.made());
  return all;
}

}  // namespace tosaic::shaders
