// SPDX-License-Identifier: Apache-2.0
// Where the tile of a workgroup lies in a batched matrix product, for kernels that multiply tiles of any kind.
#pragma once
#include "shaders/fetched_operand.h"
#include "shaders/strided_operand.h"

namespace tosaic::shaders {

// An operand and its strides.
struct MatmulOperand {
  const Fetched& fetched;
  const StridedMatrices& strided;
};

// A product of `batches` matrices of rows x columns, summed over `depth`, in tiles of tile_rows x tile_columns.
struct TiledMatmul {
  Dim batches, rows, columns, depth;
  std::uint32_t tile_rows, tile_columns;
  Dim across() const { return ceil_div(columns, std::int64_t{tile_columns}); }
  Dim down() const { return ceil_div(rows, std::int64_t{tile_rows}); }
  Dim tiles() const { return batches * across() * down(); }  // one per workgroup
};

// The tile of this workgroup. There may be more workgroups than tiles: those have no rows.
struct MatmulTile {
  Value all_rows, all_columns, all_depth;
  Value batch, own_rows;           // own_rows: all_rows, or 0
  Value first_row, first_column;   // of the tile
  Value left_begin, left_rows;     // where the batch's matrix begins in its buffer, and how far apart its rows lie
  Value right_begin, right_pitch;  // likewise; how far apart its columns lie where it is read by columns
};
MatmulTile matmul_tile(Kernel& s, const TiledMatmul& size, const MatmulOperand& left, const MatmulOperand& right);

}  // namespace tosaic::shaders
