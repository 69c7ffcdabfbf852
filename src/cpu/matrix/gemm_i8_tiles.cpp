// SPDX-License-Identifier: Apache-2.0
// Matrix products by tiles. Two tiles of A by two of B at a time: 32 rows and columns. A processor multiplies tiles
// beside everything else it does, so the sums of one block are rescaled between the products of the next.
#include <algorithm>
#include <cstring>

#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/tiles.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/gemm_i8_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"
#include "cpu/matrix/tile_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr std::int64_t side = 16;         // of a tile of sums
constexpr std::int64_t block = 2 * side;  // rows and columns computed at a time
using Sums = std::int32_t[block][block];

// What becomes of the sums of rows [first, last) of a block, whose first row is `row` of the call.
HWY_INLINE void finish(const GemmI8Call& call, const Sums& sums, std::int64_t row, std::int64_t first,
                       std::int64_t last) {
  const Ints d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const QuantisedValues quantised(call.zero_point, call.lowest, call.highest);
  for (std::int64_t j = 0; j < call.columns; j += lanes) {
    const bool whole = call.columns - j >= lanes;
    const IntVector term = hn::LoadU(d, call.column_term + j);
    const auto total = [&](std::int64_t r) HWY_ATTR {
      const IntVector sum = hn::Add(hn::LoadU(d, &sums[r][j]), term);
      return call.row_term ? hn::Add(sum, hn::Set(d, call.row_term[row + r])) : sum;
    };
    if (call.sums) {
      for (std::int64_t r = first; r < last; ++r) {
        std::int32_t* to = call.sums + (row + r) * call.c_stride + j;
        whole ? hn::StoreU(total(r), d, to) : store_first(total(r), d, call.columns - j, to);
      }
      continue;
    }
    const RescaleVector rescale(call.multiplier + j, call.shift + j, call.round + j);
    std::int8_t* to = call.c + row * call.c_stride + j;
    std::int64_t r = first;
    for (; whole && r + 4 <= last; r += 4)
      quantised.store_four({rescale(total(r)), rescale(total(r + 1)), rescale(total(r + 2)), rescale(total(r + 3))},
                           to + r * call.c_stride, call.c_stride);
    for (; r < last; ++r) quantised.store(rescale(total(r)), call.columns - j, to + r * call.c_stride);
  }
}

// The products of a block, whose A begins at `a`; between(step) after each step.
template <class Registers, int row_tiles, int column_tiles, class Between>
HWY_INLINE void multiply_block(Registers& tiles, const GemmI8Call& call, std::int64_t step_groups, const std::byte* a,
                               Sums& sums, const Between& between) {
  const auto* b = static_cast<const std::byte*>(call.b);
  constexpr std::int64_t b_stride = column_tiles * side * 4;
  tiles.template clear<0>();
  if constexpr (column_tiles == 2) tiles.template clear<1>();
  if constexpr (row_tiles == 2) tiles.template clear<2>();
  if constexpr (row_tiles == 2 && column_tiles == 2) tiles.template clear<3>();
  for (std::int64_t g = 0; g < call.groups; g += step_groups) {
    tiles.template load<6>(b, b_stride);
    tiles.template load_once<4>(a, call.a_stride);
    tiles.template add_products<0, 4, 6>();
    if constexpr (row_tiles == 2) {
      tiles.template load_once<5>(a + side * call.a_stride, call.a_stride);
      tiles.template add_products<2, 5, 6>();
    }
    if constexpr (column_tiles == 2) {
      tiles.template load<7>(b + side * 4, b_stride);
      tiles.template add_products<1, 4, 7>();
    }
    if constexpr (row_tiles == 2 && column_tiles == 2) tiles.template add_products<3, 5, 7>();
    a += step_groups * 4;
    b += step_groups * b_stride;
    between(g + step_groups);
  }
  tiles.template store<0>(&sums[0][0], sizeof sums[0]);
  if constexpr (column_tiles == 2) tiles.template store<1>(&sums[0][side], sizeof sums[0]);
  if constexpr (row_tiles == 2) tiles.template store<2>(&sums[side][0], sizeof sums[0]);
  if constexpr (row_tiles == 2 && column_tiles == 2) tiles.template store<3>(&sums[side][side], sizeof sums[0]);
}

template <class Registers, int row_tiles, int column_tiles>
HWY_NOINLINE void multiply_panel(const GemmI8Call& call) {
  const std::int64_t steps = (call.groups + side - 1) / side, step_groups = call.groups / steps;
  Registers tiles(step_groups);
  alignas(64) Sums sums[2];
  constexpr std::int64_t height = row_tiles * side, slice = 4;  // rows worth loading a column's constants for
  std::int64_t pending = -1;                                    // the first row of the block that waits
  int now = 0;
  // The last block begins where it ends with the last row: some rows are computed twice.
  const std::int64_t last_start = std::max<std::int64_t>(0, call.rows - height), rows = std::min(height, call.rows);
  for (std::int64_t first = 0; first < call.rows; first += height) {
    const std::int64_t start = std::min(first, last_start);
    std::int64_t done = 0;
    multiply_block<Registers, row_tiles, column_tiles>(
        tiles, call, step_groups, static_cast<const std::byte*>(call.a) + start * call.a_stride, sums[now],
        [&](std::int64_t groups) HWY_ATTR {
          const std::int64_t until = rows * groups / call.groups;
          if (pending < 0 || (until - done < slice && groups < call.groups)) return;
          finish(call, sums[1 - now], pending, done, until);
          done = until;
        });
    pending = start;
    now = 1 - now;
  }
  finish(call, sums[1 - now], pending, 0, rows);
}

template <class Registers>
void panel(const GemmI8Call& call) {
  if (call.rows <= side)
    return call.units == 2 ? multiply_panel<Registers, 1, 2>(call) : multiply_panel<Registers, 1, 1>(call);
  call.units == 2 ? multiply_panel<Registers, 2, 2>(call) : multiply_panel<Registers, 2, 1>(call);
}

void copy(const std::int8_t* from, std::int64_t count, void* to) {
  std::memcpy(to, from, static_cast<std::size_t>(count));
}

template <class Registers>
constexpr GemmI8 kernel(int lanes) {
  return {.lanes = lanes,
          .unit_columns = side,
          .max_rows = side,
          .least_rows = block,
          .group = 4,
          .most_groups = side,
          .a_bytes = 1,
          .b_bytes = 1,
          .offset = 0,
          .loads_tiles = true,
          .convert = &copy,
          .panel = &panel<Registers>};
}

}  // namespace

const GemmI8* gemm_i8_tiles_here([[maybe_unused]] bool instructions) {
  const int lanes = static_cast<int>(hn::Lanes(Ints()));
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86_64
  static const GemmI8 here = kernel<TileInstructions>(lanes);
  if (instructions) return &here;
#else
  if (instructions) return nullptr;  // less than this processor's best was asked for
#endif
  static const GemmI8 plain = kernel<TilesInPlainCode>(lanes);
  return &plain;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(gemm_i8_tiles_here);
const GemmI8* gemm_i8_tiles() {
  const Tiles tiles = tiles_in_use();
  return tiles == Tiles::none ? nullptr : HWY_DYNAMIC_DISPATCH(gemm_i8_tiles_here)(tiles == Tiles::instructions);
}
}  // namespace tosaic::cpu
#endif
