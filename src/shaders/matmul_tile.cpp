// SPDX-License-Identifier: Apache-2.0
#include "shaders/matmul_tile.h"

namespace tosaic::shaders {

MatmulTile matmul_tile(Kernel& s, const TiledMatmul& size, const MatmulOperand& left, const MatmulOperand& right) {
  // By name: clang 14 captures no structured bindings.
  const auto &a_units = left.fetched, &b_units = right.fetched;
  const auto &a = left.strided, &b = right.strided;
  const Value all_rows = s.param(size.rows), all_columns = s.param(size.columns), all_depth = s.param(size.depth);
  const Value tiles_across = s.param(size.across()), tiles_down = s.param(size.down()), rest = s.group() / tiles_across;
  const Value number = rest / tiles_down, batch_exists = number < s.param(size.batches);
  const Value first_row = rest % tiles_down * size.tile_rows,
              first_column = s.group() % tiles_across * size.tile_columns;
  const Value batch = s.select(batch_exists, number, s.integer(0));
  const Value own_rows = s.select(batch_exists, all_rows, s.integer(0));
  const Value left_begin = s.param(a_units.units(a.offset)) +
                           a.batches.begin(s, batch, [&](const Dim&n) { return a_units.units(n); }),
              left_rows = s.param(a_units.units(a.rows));
  const Value right_begin = s.param(b_units.units(b.offset)) +
                            b.batches.begin(s, batch, [&](const Dim&n) { return b_units.units(n); }),
              right_pitch = s.param(b_units.units(b.is_by_columns() ? b.columns : b.rows));
  return {all_rows,     all_columns, all_depth, batch,       own_rows,   first_row,
          first_column, left_begin,  left_rows, right_begin, right_pitch};
}

}  // namespace tosaic::shaders
