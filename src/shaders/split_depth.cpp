// SPDX-License-Identifier: Apache-2.0
#include "shaders/split_depth.h"

#include "shaders/axes.h"

namespace tosaic::shaders {

bool can_split_depth(const tosa::View& view) {
  const Shape& out = view.out().shape;
  return out.is_static() && out.size(out.rank() - 1) % 4 == 0;
}

Value part_of(Kernel& s, const SplitDepth& split, const Dim& tiles, Value& group, Value& all_rows) {
  const Value none = s.integer(0);
  if (split.parts == 1) return none;
  const Value all_tiles = s.param(tiles), number = group / all_tiles, exists = number < split.parts;
  const Value part = s.select(exists, number, none);
  group = group % all_tiles;
  all_rows = s.select(exists, all_rows, s.integer(0));
  return part;
}

static MadeList made_of_parts(const Work& work, const Node& node, const Finish& end, const SplitDepth& split) {
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

MadeList made_with_parts(Kernel& s, const Work& work, const Node& node, const Finish& end, const SplitDepth& split) {
  if (split.parts == 1) return one(s);
  if (!s.fits()) return std::nullopt;
  MadeList made = made_of_parts(work, node, end, split);
  if (made) made->insert(made->begin(), s.made());
  return made;
}

}  // namespace tosaic::shaders
