// SPDX-License-Identifier: Apache-2.0
// A plain convolution and the depthwise one that alone reads what it makes, in one dispatch: a group makes the product
// for a region of pixels and some channels, finishes it in the memory that it shares, and goes over it with the second
// one's windows. Regions share the pixels that windows of both reach; those are computed by each.
#pragma once
#include <limits>

#include "shaders/axes.h"
#include "shaders/product_tile.h"
#include "shaders/tile_accumulators.h"

namespace tosaic::shaders {

// Regions of an image: `width` x `height` of its pixels, from which out_width x out_height results are made.
struct Regions {
  std::int64_t width, height, out_width, out_height;
  std::int64_t across, down, images;
  std::int64_t count() const { return across * down * images; }
};
// The fewest of at most `rows` pixels each; nullopt: not even one window fits, or two dispatches are faster, as so many
// pixels would be computed more than once.
std::optional<Regions> regions_of(const tosa::View& depthwise, std::int64_t rows);

// The tile, a region's pixels its rows, with which a product of such a depth takes fewest clocks.
template <class Tile>
struct RegionTile {
  Tile tile;
  Regions regions;
};
template <class Tile>
std::optional<RegionTile<Tile>> region_tile(const tosa::View& depthwise, std::int64_t depth,
                                            std::span<const Tile> tiles,
                                            double (*clocks)(const Tile&, const ProductSize&)) {
  std::optional<RegionTile<Tile>> best;
  double least = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles)
    if (const auto regions = regions_of(depthwise, tile.rows)) {
      const double found = clocks(tile, {1, regions->count() * tile.rows, depthwise.out().shape.size(3), depth});
      if (found >= least) continue;
      least = found;
      best = {tile, *regions};
    }
  return best;
}

// May the second node's windows be gone over so, where the first one makes what it reads?
bool may_fuse_depthwise(const tosa::View& plain, const tosa::View& depthwise);

class FusedDepthwise {
 public:
  // Of channels `first_column`.. and so many; all the groups' invocations take part.
  FusedDepthwise(Kernel& s, const Finish::Behind& behind, const Regions& regions, Value region, Value first_column,
                 Value all_columns, std::uint32_t columns, std::uint32_t invocations);

  // What a row of the product is: the number of a pixel, where there is one.
  struct Window {
    Value exists, pixel;
  };
  Window place(Value row) const;
  // Reads weights and bias, before the sums are made.
  void prepare();
  // The sums go through `between` and then through the windows.
  void take(const TileAccumulators& sums, const Finish& between, const tosa::View& plain) const;

 private:
  void finish(const TileAccumulators& sums, const Finish& between, const tosa::View& plain) const;
  Quad window(const TileAccumulators& sums, Value y, Value x) const;
  Value there(Value column) const { return column < all_columns_; }

  Kernel& s_;
  const tosa::View view_;
  const Finish& end_;
  const std::uint32_t wide_, invocations_;  // wide: quads of channels
  // An axis of the image: sizes as parameters, the windows' steps as part of the shader.
  struct Line {
    Value size, out;
    std::int64_t stride, before;
  };
  Line line(std::size_t axis);
  const Line down_, across_;
  const Value width_, height_, out_width_, out_height_, all_columns_, first_column_;
  const std::optional<Value> zero_point_, weight_zero_point_;
  Value image_, out_x_, out_y_, x_, y_, exists_;  // where the region's results and pixels begin
  std::vector<RawQuad> weights_;
  std::optional<Quad> bias_;
};

}  // namespace tosaic::shaders
