// SPDX-License-Identifier: Apache-2.0
// How the subgroups of a work group divide a product that they compute by matrices of 16 x 16 halves.
#pragma once
#include "shaders/product_tile.h"
#include "shaders/shader.h"

namespace tosaic::shaders {

// A group makes rows x columns of the product, depth factors at a time. Its subgroups are `split` teams, each with its
// own part of the depth, of down x across subgroups.
struct MatrixTile {
  std::uint32_t rows, columns, depth, down, across, split;
  std::uint32_t passes = 1;  // in which the sums go through the memory that is shared: some rows in each
  std::uint32_t ahead = 1;   // steps whose factors are on their way from memory at once

  constexpr std::uint32_t team() const { return down * across * matrix_subgroup; }
  constexpr std::uint32_t invocations() const { return team() * split; }
  // Matrices of a subgroup.
  constexpr std::uint32_t own_down() const { return rows / down / matrix_side; }
  constexpr std::uint32_t own_across() const { return columns / across / matrix_side; }
  // Vectors of eight halves that a row of a factor takes: one more than it has, so that reads of several rows do not
  // wait for each other. Sums are vectors of four.
  constexpr std::uint32_t left_pitch() const { return depth / 8 + 1; }
  constexpr std::uint32_t right_pitch() const { return columns / 8 + 1; }
  constexpr std::uint32_t sum_pitch() const { return columns / 4 + 1; }
  constexpr std::uint32_t left() const { return rows * left_pitch(); }
  constexpr std::uint32_t right() const { return depth * right_pitch(); }
  constexpr std::uint32_t shared() const {
    const std::uint32_t factors = left() + right(), sums = rows / passes * sum_pitch();
    return split * (factors > sums ? factors : sums);
  }

  // Of vectors, that an invocation reads at each step.
  constexpr std::uint32_t left_reads() const { return rows * depth / 8 / team(); }
  constexpr std::uint32_t right_reads() const { return depth * columns / 8 / team(); }
};

// For a product of one batch, by weights; and for one of some batches.
const MatrixTile& matrix_tile_for(const ProductSize& size);
const MatrixTile& matrix_tile_for_batches(const ProductSize& size);
// Those whose sums are gone over once more (fused_depthwise.h), and the clocks that such a product takes.
std::span<const MatrixTile> region_matrix_tiles();
double clocks_of_matrices(const MatrixTile& tile, const ProductSize& size);

}  // namespace tosaic::shaders
