// SPDX-License-Identifier: Apache-2.0
// Products whose tiles are too few for a device and whose depth is long: several groups make parts of one tile's sums,
// which lie in scratch memory until a second dispatch adds them up and does what follows the product.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

// Sums of rows x columns, once for each part of the depth.
struct SplitDepth {
  std::int64_t parts = 1;
  std::int64_t rows = 0, columns = 0;
  DType type = DType::f32;  // of the sums

  std::int64_t quads() const { return rows * columns / 4; }
  Scratch scratch() const { return {0, static_cast<std::uint64_t>(parts * quads()) * 16}; }
};

// Of convolutions whose sizes do not vary and whose sums are whole quads.
bool can_split_depth(const tosa::View& view);

// Of the first dispatch, whose groups are tiles and parts, perhaps some more: the part that a group makes. `group` is
// then that of the tile, and those that are too many have no rows.
Value part_of(Kernel& s, const SplitDepth& split, const Dim& tiles, Value& group, Value& all_rows);

// The first dispatch, and the second one where there are parts. Nothing: it does not fit.
MadeList made_with_parts(Kernel& s, const Work& work, const Node& node, const Finish& end, const SplitDepth& split);

}  // namespace tosaic::shaders
