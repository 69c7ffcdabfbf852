// SPDX-License-Identifier: Apache-2.0
// How the subgroups of a work group divide a product that they compute by matrices of f16 or of 8-bit integers.
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
  MatrixOf of = MatrixOf::f16;

  // Of 8-bit integers, as many vectors deep.
  constexpr MatrixTile of_int8() const {
    MatrixTile tile = *this;
    tile.depth *= 2;
    tile.of = MatrixOf::int8;
    return tile;
  }

  // Elements in a vector; a matrix is two vectors deep.
  constexpr std::uint32_t unit() const { return of == MatrixOf::int8 ? 16 : 8; }
  constexpr std::uint32_t team() const { return down * across * matrix_subgroup; }
  constexpr std::uint32_t invocations() const { return team() * split; }
  // Matrices of a subgroup.
  constexpr std::uint32_t own_down() const { return rows / down / matrix_side; }
  constexpr std::uint32_t own_across() const { return columns / across / matrix_side; }
  constexpr std::uint32_t deep() const { return depth / unit(); }  // vectors
  constexpr std::uint32_t wide() const { return columns / unit(); }
  // Vectors that a row of a factor takes, or a column of the right one where it lies so: one more than it has, so that
  // reads of several rows do not wait for each other. Sums are vectors of four.
  constexpr std::uint32_t left_pitch() const { return deep() + 1; }
  constexpr std::uint32_t right_pitch(bool by_columns) const { return by_columns ? deep() + 1 : wide() + 1; }
  constexpr std::uint32_t sum_pitch() const { return columns / 4 + 1; }
  constexpr std::uint32_t left() const { return rows * left_pitch(); }
  constexpr std::uint32_t right(bool by_columns) const {
    return (by_columns ? columns : depth) * right_pitch(by_columns);
  }
  constexpr std::uint32_t shared(bool by_columns) const {
    const std::uint32_t factors = left() + right(by_columns), sums = rows / passes * sum_pitch();
    return split * (factors > sums ? factors : sums);
  }

  // Of vectors, that an invocation reads at each step.
  constexpr std::uint32_t left_reads() const { return rows * deep() / team(); }
  constexpr std::uint32_t right_reads() const { return columns * deep() / team(); }
};

// For a product of one batch, by weights; and for one of some batches.
struct DividedMatrices {
  MatrixTile tile;
  std::int64_t parts;  // of the depth, which are added up later (split_depth.h)
};
DividedMatrices divided_matrices(const ProductSize& size, MatrixOf of, bool can_split);
const MatrixTile& matrix_tile_for_batches(const ProductSize& size);
// Those whose sums are gone over once more (fused_depthwise.h), and the clocks that such a product takes.
std::span<const MatrixTile> region_matrix_tiles();
double clocks_of_matrices(const MatrixTile& tile, const ProductSize& size);

}  // namespace tosaic::shaders
