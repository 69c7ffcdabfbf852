// SPDX-License-Identifier: Apache-2.0
#include "shaders/matrix_tile.h"

#include <algorithm>

namespace tosaic::shaders {
namespace {

constexpr MatrixTile tiles[] = {
    {16, 16, 64, 1, 1, 4}, {16, 32, 64, 1, 2, 4}, {32, 32, 64, 2, 2, 2}, {32, 64, 64, 2, 2, 2}, {64, 64, 64, 2, 4, 1},
};

// Of regions: their sums lie in the memory at once.
constexpr MatrixTile of_regions[] = {{64, 16, 64, 2, 1, 2}, {64, 32, 32, 2, 2, 1}, {128, 32, 32, 2, 2, 1}};

// Of large int8 products of one batch, the narrowest first.
constexpr MatrixTile large[] = {{64, 64, 64, 2, 4, 1, 1, 2}, {64, 96, 64, 2, 2, 1, 2}, {64, 128, 32, 2, 2, 1, 2, 2}};

// Every vector is read by exactly one invocation, and what devices with such matrices share is enough.
constexpr bool fits_within(std::uint32_t shared_bytes, const MatrixTile& t) {
  const std::uint32_t team = t.team();
  return t.rows * t.deep() % team == 0 && t.columns * t.deep() % team == 0 && team % t.deep() == 0 &&
         t.own_down() * t.down * matrix_side == t.rows && t.own_across() * t.across * matrix_side == t.columns &&
         t.deep() % 2 == 0 && t.columns % t.unit() == 0 && t.own_down() % t.passes == 0 &&
         std::max(t.shared(false), t.shared(true)) * 16 <= shared_bytes && t.invocations() <= 256;
}
constexpr bool fits(const MatrixTile& t) {
  constexpr std::uint32_t ones = 32;  // the bytes by which integers are summed alone
  return fits_within(32 << 10, t) && fits_within((40 << 10) - ones, t.of_int8());
}
static_assert(std::ranges::all_of(tiles, fits) && std::ranges::all_of(large, fits) &&
              std::ranges::all_of(of_regions, fits));

// Processors of a large GPU, subgroups at once on one of them, clocks of a group and of its steps that nothing else
// fills, products per clock, and clocks to store a sum. Fitted to what an H200 takes for the layers of some networks.
constexpr double processors = 132, subgroups_at_once = 9.2, group_clocks = 3800, step_clocks = 570, clocks_of_sum = 1.6;
constexpr double products_per_clock(const MatrixTile& t) { return t.rows >= 64 ? 550 : t.rows >= 32 ? 700 : 230; }

double clocks(const MatrixTile& t, const ProductSize& size) {
  const auto along = [](std::int64_t n, std::int64_t by) {
    const std::int64_t count = (n + by - 1) / by;
    return static_cast<double>(count);
  };
  const double groups = static_cast<double>(size.batches) * along(size.rows, t.rows) * along(size.columns, t.columns);
  const double steps = along(size.depth, t.depth * t.split), of_each = groups / processors;
  const double waves = std::max(1.0, of_each * t.invocations() / matrix_subgroup / subgroups_at_once);
  const double waiting = (group_clocks + steps * step_clocks) * waves;
  const double busy =
      of_each * t.rows * t.columns * (steps * t.depth * t.split / products_per_clock(t) + clocks_of_sum);
  return std::max(waiting, busy) + 0.4 * std::min(waiting, busy);
}

}  // namespace

const MatrixTile& matrix_tile_for_batches(const ProductSize& size) {
  return *std::ranges::min_element(tiles, {}, [&](const MatrixTile& t) { return clocks(t, size); });
}

namespace {

constexpr std::int64_t long_depth = 512;

// The narrowest one that two at once on each processor are all of, where depths are long.
const MatrixTile& large_tile(const ProductSize& size) {
  constexpr std::int64_t at_once = 2 * many_processors;
  for (const MatrixTile& t : large)
    if (size.tiles(t.rows, t.columns) <= at_once) return t;
  return std::end(large)[-1];
}

// Of f16, and what an H200 takes for them, in us: for a step with which a processor is alone, for the steps of one
// group where others fill it, and for a group's sums. Fitted to 25 products of some networks, of which the best of 28
// tilings takes on average 2 % less than the one that is chosen so.
struct MeasuredMatrices {
  MatrixTile tile;
  double alone, busy, sums;
};
constexpr MeasuredMatrices of_many[] = {
    {{32, 64, 64, 1, 2, 2, 1, 2}, 0.93, 0.45, 1.3}, {{48, 64, 64, 1, 4, 1, 1, 2}, 0.65, 0.3, 1.05},
    {{64, 32, 64, 2, 2, 1}, 0.68, 0.26, 0.8},       {{64, 64, 64, 2, 2, 1}, 0.73, 0.3, 1.3},
    {{64, 64, 64, 2, 4, 1, 1, 2}, 0.6, 0.375, 1.3}, {{96, 64, 64, 2, 2, 1}, 0.73, 0.35, 2.1},
    {{128, 64, 64, 2, 2, 1, 2}, 0.75, 0.475, 2.8},
};
static_assert(std::ranges::all_of(of_many, fits, &MeasuredMatrices::tile));

// Steps that only fill up what is read ahead take as long as others.
std::int64_t steps_of(const MatrixTile& t, std::int64_t depth) {
  const std::int64_t of_turn = std::int64_t{t.depth} * t.split * t.ahead;
  return (depth + of_turn - 1) / of_turn * t.ahead;
}

// Each processor waits for the one that has most groups.
double us(const MeasuredMatrices& m, const ProductSize& size) {
  const std::int64_t groups = size.tiles(m.tile.rows, m.tile.columns),
                     of_each = (groups + many_processors - 1) / many_processors, steps = steps_of(m.tile, size.depth);
  const auto n = static_cast<double>(of_each);
  return static_cast<double>(steps) * std::max(m.alone, n * m.busy) + n * m.sums;
}

// Of f16, as measured on an H200: where there are enough of wide tiles, the one that takes least time; else the widest
// of which there are enough, with two steps' factors on their way where that makes no more steps.
MatrixTile tile_of_one_batch(const ProductSize& size) {
  constexpr std::int64_t many = 97;
  if (size.tiles(64, 64) >= many)
    return std::ranges::min_element(of_many, {}, [&](const MeasuredMatrices& m) { return us(m, size); })->tile;
  constexpr struct {
    const MatrixTile& tile;
    std::int64_t enough;
  } by_width[] = {{of_many[0].tile, 72}, {tiles[2], 80}, {tiles[1], 72}};
  const auto found = std::ranges::find_if(
      by_width, [&](const auto& w) { return size.tiles(w.tile.rows, w.tile.columns) >= w.enough; });
  if (found == std::end(by_width)) return matrix_tile_for_batches(size);
  MatrixTile tile = found->tile;
  tile.ahead = 1;
  if (tile.rows == 32 && steps_of(tile, size.depth) % 2 == 0) tile.ahead = 2;
  return tile;
}

}  // namespace

DividedMatrices divided_matrices(const ProductSize& size, MatrixOf of, bool can_split) {
  if (of == MatrixOf::int8) {
    const bool is_large =
        size.depth >= long_depth && size.tiles(large[0].rows, large[0].columns) > 2 * many_processors / 3;
    return {is_large ? large_tile(size) : matrix_tile_for_batches(size), 1};
  }
  // So deep and so few that reading weights takes longer than adding up parts.
  constexpr std::int64_t deep = 2048, fewest = 16, few = 64, parts = 4;
  MatrixTile tile = tiles[3];
  const std::int64_t count = size.tiles(tile.rows, tile.columns);
  if (can_split && size.depth >= deep && count >= fewest && count <= few) {
    tile.ahead = 2;
    return {tile, parts};
  }
  return {tile_of_one_batch(size), 1};
}

std::span<const MatrixTile> region_matrix_tiles() { return of_regions; }
double clocks_of_matrices(const MatrixTile& tile, const ProductSize& size) { return clocks(tile, size); }

}  // namespace tosaic::shaders
