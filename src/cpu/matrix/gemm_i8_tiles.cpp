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

// Rows [first, last) of a block become rows of C from `row` on: sums, or bytes.
HWY_INLINE void keep(const GemmI8Call& call, const Sums& sums, std::int64_t first, std::int64_t last,
                     std::int64_t row) {
  const Ints d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const QuantisedValues quantised(call.zero_point, call.lowest, call.highest);
  for (std::int64_t j = 0; j < call.columns; j += lanes) {
    const std::int64_t count = std::min(call.columns - j, lanes);
    const IntVector term = hn::LoadU(d, call.column_term + j);
    for (std::int64_t r = first; r < last; ++r) {
      IntVector total = hn::Add(hn::LoadU(d, &sums[r][j]), term);
      if (call.row_term) total = hn::Add(total, hn::Set(d, call.row_term[row + r - first]));
      const std::int64_t to = (row + r - first) * call.c_stride + j;
      if (!call.sums)
        quantised.store(RescaleVector(call.multiplier + j, call.shift + j, call.round + j)(total), count, call.c + to);
      else if (count == lanes)
        hn::StoreU(total, d, call.sums + to);
      else
        store_first(total, d, count, call.sums + to);
    }
  }
}
#if HWY_TARGET <= HWY_AVX3
// Bytes of whole tiles, which is what most are: all constants stay in registers.
template <int column_tiles>
HWY_INLINE void keep_whole(const GemmI8Call& call, const Sums& sums, std::int64_t first, std::int64_t last,
                           std::int64_t row) {
  const Ints d;
  constexpr std::int64_t right = (column_tiles - 1) * side;  // the second tile, where there are two
  const QuantisedValues quantised(call.zero_point, call.lowest, call.highest);
  const RescaleVector scale(call.multiplier, call.shift, call.round),
      scale_right(call.multiplier + right, call.shift + right, call.round + right);
  const IntVector term = hn::LoadU(d, call.column_term), term_right = hn::LoadU(d, call.column_term + right);
  const auto at = [&](std::int64_t r) HWY_ATTR { return scale(hn::Add(hn::LoadU(d, &sums[r][0]), term)); };
  const auto at_right = [&](std::int64_t r)
                            HWY_ATTR { return scale_right(hn::Add(hn::LoadU(d, &sums[r][right]), term_right)); };
  std::int8_t* to = call.c + row * call.c_stride;
  std::int64_t r = first;
  if constexpr (column_tiles == 2) {
    for (; r + 2 <= last; r += 2, to += 2 * call.c_stride)
      quantised.store_pairs({at(r), at_right(r), at(r + 1), at_right(r + 1)}, to, call.c_stride);
    if (r == last) return;
    quantised.store(at(r), to);
    quantised.store(at_right(r), to + right);
  } else {
    for (; r + 4 <= last; r += 4, to += 4 * call.c_stride)
      quantised.store_four({at(r), at(r + 1), at(r + 2), at(r + 3)}, to, call.c_stride);
    for (; r < last; ++r, to += call.c_stride) quantised.store(at(r), to);
  }
}
#endif
template <int column_tiles>
HWY_INLINE void keep_run(const GemmI8Call& call, const Sums& sums, std::int64_t first, std::int64_t last,
                         std::int64_t row) {
#if HWY_TARGET <= HWY_AVX3
  if (call.c && !call.row_term && call.columns == column_tiles * side)
    return keep_whole<column_tiles>(call, sums, first, last, row);
#endif
  keep(call, sums, first, last, row);
}
// Of rows [first, last) of the block that begins with row `start` of A.
template <int column_tiles>
HWY_INLINE void finish(const GemmI8Call& call, const Sums& sums, std::int64_t start, std::int64_t first,
                       std::int64_t last) {
  if (call.line_rows == 0) return keep_run<column_tiles>(call, sums, first, last, start + first);
  while (first < last) {
    const std::int64_t line = (start + first) / call.line_rows, at = (start + first) % call.line_rows,
                       end = std::min(last, first + call.line_rows - at),
                       kept = std::min(end, first + call.kept_rows - at);
    if (kept > first) keep_run<column_tiles>(call, sums, first, kept, line * call.kept_rows + at);
    first = end;
  }
}

// The next panel of B, which is asked for piece by piece while this one is in use: large weights come from the memory
// that processors share, at a fifth of the rate of the second-level cache.
class NextPanel {
 public:
  NextPanel(const GemmI8Call& call, std::int64_t steps)  // so many of all blocks
      : at_(static_cast<const std::byte*>(call.next_b)),
        lines_(at_ ? call.groups * call.units * side * 4 / line : 0),
        at_once_((lines_ + steps - 1) / steps) {}
  HWY_INLINE void step() {
    for (std::int64_t i = std::min(at_once_, lines_); i > 0; --i, --lines_, at_ += line) __builtin_prefetch(at_, 0, 2);
  }

 private:
  static constexpr std::int64_t line = static_cast<std::int64_t>(line_bytes);
  const std::byte* at_;
  std::int64_t lines_, at_once_;
};

// Rows of A that windows share are needed again soon.
template <int tile, class Registers>
HWY_INLINE void load_a(Registers& tiles, const GemmI8Call& call, const std::byte* from) {
  if (call.a_steps)
    tiles.template load<tile>(from, call.a_stride);
  else
    tiles.template load_once<tile>(from, call.a_stride);
}

// The products of a block, whose A begins at `a`; between(step) after each step.
template <class Registers, int row_tiles, int column_tiles, class Between>
HWY_INLINE void multiply_block(Registers& tiles, const GemmI8Call& call, std::int64_t step_groups, const std::byte* a,
                               Sums& sums, NextPanel& next, const Between& between) {
  const auto* b = static_cast<const std::byte*>(call.b);
  constexpr std::int64_t b_stride = column_tiles * side * 4;
  tiles.template clear<0>();
  if constexpr (column_tiles == 2) tiles.template clear<1>();
  if constexpr (row_tiles == 2) tiles.template clear<2>();
  if constexpr (row_tiles == 2 && column_tiles == 2) tiles.template clear<3>();
  for (std::int64_t g = 0, step = 0; g < call.groups; g += step_groups, ++step) {
    const std::byte* at = a + (call.a_steps ? call.a_steps[step] : g * 4);
    tiles.template load<6>(b, b_stride);
    load_a<4>(tiles, call, at);
    tiles.template add_products<0, 4, 6>();
    if constexpr (row_tiles == 2) {
      load_a<5>(tiles, call, at + side * call.a_stride);
      tiles.template add_products<2, 5, 6>();
    }
    if constexpr (column_tiles == 2) {
      tiles.template load<7>(b + side * 4, b_stride);
      tiles.template add_products<1, 4, 7>();
    }
    if constexpr (row_tiles == 2 && column_tiles == 2) tiles.template add_products<3, 5, 7>();
    b += step_groups * b_stride;
    next.step();
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
  NextPanel next(call, (call.rows + height - 1) / height * steps);
  // The last block begins where it ends with the last row: some rows are computed twice.
  const std::int64_t last_start = std::max<std::int64_t>(0, call.rows - height), rows = std::min(height, call.rows);
  for (std::int64_t first = 0; first < call.rows; first += height) {
    const std::int64_t start = std::min(first, last_start);
    std::int64_t done = 0;
    multiply_block<Registers, row_tiles, column_tiles>(
        tiles, call, step_groups, static_cast<const std::byte*>(call.a) + start * call.a_stride, sums[now], next,
        [&](std::int64_t groups) HWY_ATTR {
          const std::int64_t until = rows * groups / call.groups;
          if (pending < 0 || (until - done < slice && groups < call.groups)) return;
          finish<column_tiles>(call, sums[1 - now], pending, done, until);
          done = until;
        });
    pending = start;
    now = 1 - now;
  }
  finish<column_tiles>(call, sums[1 - now], pending, 0, rows);
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
