// SPDX-License-Identifier: Apache-2.0
// How a work group divides a matrix product among its invocations.
#pragma once
#include <cstdint>

namespace tosaic::shaders {

// A group makes rows x columns of the product, depth factors at a time. Its invocations are `split` teams, each with
// its own part of the depth; an invocation makes own_rows x own_columns.
struct ProductTile {
  std::uint32_t rows, columns, depth, own_rows, own_columns, split;

  constexpr std::uint32_t team() const { return rows / own_rows * (columns / own_columns); }
  constexpr std::uint32_t invocations() const { return team() * split; }
  // Vectors of four that the group shares: rows of the left factor are one longer, so that invocations that read the
  // same column of several rows do not wait for each other.
  constexpr std::uint32_t left() const { return rows * (depth / 4 + 1); }
  constexpr std::uint32_t right() const { return depth * columns / 4; }
  constexpr std::uint32_t shared() const {
    const std::uint32_t factors = left() + right(), sums = rows * columns / 4;
    return split * (factors > sums ? factors : sums);
  }
  // Of vectors, that an invocation reads at each step.
  constexpr std::uint32_t left_reads() const { return rows * depth / 4 / team(); }
  constexpr std::uint32_t right_reads() const { return depth * columns / 4 / team(); }
};

struct ProductSize {
  std::int64_t batches, rows, columns, depth;
};
const ProductTile& tile_for(const ProductSize& size);

}  // namespace tosaic::shaders
