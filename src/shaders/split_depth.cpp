// SPDX-License-Identifier: Apache-2.0
#include "shaders/split_depth.h"

#include "shaders/axes.h"

namespace tosaic::shaders {

bool can_split_depth(const tosa::View& view) {
  const Shape& out = view.out().shape;
  return out.is_static() && out.size(out.rank() - 1) % 4 == 0;
}

MadeList made_of_parts(const Work& work, const Node& node, const Finish& end, const SplitDepth& split) {
  const tosa::View view(work.graph, node);
  Kernel s(work, std::string(tosa::find(node.op)->name), split.quads());
  const Buffer sums = s.read_scratch(split.type, split.scratch());
  const Value quads = s.param(split.quads());
  Quad all = bias_quad_at(s, view, s.index() % s.param(split.columns / 4));
  for (std::int64_t part = 0; part < split.parts; ++part) {
    const Quad one = s.load_quad(sums, part ? s.index() + quads * part : s.index());
    for (std::size_t q = 0; q < 4; ++q) all[q] = all[q] + one[q];
  }
  end.store_finished(s, s.index(), end.finished_quad(s, s.index(), all));
  return one(s);
}

}  // namespace tosaic::shaders
