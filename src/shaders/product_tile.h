// SPDX-License-Identifier: Apache-2.0
// How a work group divides a matrix product among its invocations.
#pragma once
#include <cstdint>
#include <span>

namespace tosaic::shaders {

// A group makes rows x columns of the product, depth factors at a time. Its invocations are `split` teams, each with
// its own part of the depth; an invocation makes own_rows x own_columns.
struct ProductTile {
  std::uint32_t rows, columns, depth, own_rows, own_columns, split;
  std::uint32_t passes = 1;  // in which the sums go through the memory that is shared: some rows in each

  constexpr std::uint32_t team() const { return rows / own_rows * (columns / own_columns); }
  constexpr std::uint32_t invocations() const { return team() * split; }
  // Vectors of four that the group shares: rows of the left factor are one longer, so that invocations that read the
  // same column of several rows do not wait for each other.
  constexpr std::uint32_t left() const { return rows * (depth / 4 + 1); }
  constexpr std::uint32_t right() const { return depth * columns / 4; }
  constexpr std::uint32_t shared() const {
    const std::uint32_t factors = left() + right(), sums = rows * columns / 4 / passes;
    return split * (factors > sums ? factors : sums);
  }
  // Of vectors, that an invocation reads at each step.
  constexpr std::uint32_t left_reads() const { return rows * depth / 4 / team(); }
  constexpr std::uint32_t right_reads() const { return depth * columns / 4 / team(); }
};

struct ProductSize {
  std::int64_t batches, rows, columns, depth;
  std::int64_t tiles(std::int64_t tile_rows, std::int64_t tile_columns) const {
    return batches * ((rows + tile_rows - 1) / tile_rows) * ((columns + tile_columns - 1) / tile_columns);
  }
};
ProductTile tile_for(const ProductSize& size);
// Those whose sums are gone over once more (fused_depthwise.h), and the clocks that such a product takes.
std::span<const ProductTile> region_tiles();
double clocks_of_regions(const ProductTile& tile, const ProductSize& size);

// Processors of a large GPU.
inline constexpr std::int64_t many_processors = 132;

// Tiles that are too few for such a device: of how many parts of the depth groups make the sums each for itself
// (split_depth.h).
struct DividedProduct {
  ProductTile tile;
  std::int64_t parts = 1;
};
DividedProduct divided(const ProductSize& size, bool may_divide);

}  // namespace tosaic::shaders
