// SPDX-License-Identifier: Apache-2.0
#include "shaders/product_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tosaic::shaders {
namespace {

// A tile, and the products per clock that a processor of an H200 makes of it where it has groups enough.
struct MeasuredTile {
  ProductTile tile;
  double products_per_clock;
};

constexpr MeasuredTile tiles[] = {
    {{8, 8, 16, 1, 4, 8}, 16},      {{16, 16, 32, 2, 4, 2}, 32}, {{16, 32, 16, 4, 4, 4}, 48},
    {{16, 32, 32, 4, 4, 2}, 53},    {{32, 32, 16, 4, 4, 2}, 60}, {{32, 64, 32, 4, 4, 1}, 71},
    {{64, 64, 16, 8, 4, 1, 2}, 66},
};

// Of regions: their sums lie in the memory at once.
constexpr ProductTile of_regions[] = {{64, 16, 32, 2, 4, 1},
                                      {64, 32, 32, 2, 4, 1},
                                      {64, 32, 16, 4, 4, 2},
                                      {128, 16, 16, 8, 4, 1},
                                      {128, 32, 16, 8, 4, 1}};

constexpr bool is_power_of_two(std::uint32_t n) { return n && !(n & (n - 1)); }

// Every vector is read by exactly one invocation, and what any device shares is enough.
constexpr bool fits(const ProductTile& t) {
  const std::uint32_t team = t.team();
  return t.rows * t.depth / 4 % team == 0 && t.depth * t.columns / 4 % team == 0 && team % (t.depth / 4) == 0 &&
         team % (t.columns / 4) == 0 && t.own_columns % 4 == 0 && t.shared() * 16 <= 16384 && t.invocations() <= 256 &&
         is_power_of_two(t.depth) && t.own_rows % t.passes == 0 && t.rows * t.columns % t.team() == 0;
}
static_assert(std::ranges::all_of(tiles, fits, &MeasuredTile::tile) && std::ranges::all_of(of_regions, fits));

// Processors of a large GPU; clocks of a step in which nothing else fills them, to store a sum, and of a second
// dispatch, which adds up so many parts. Fitted to what an H200 takes for 68 products of some networks.
constexpr double processors = many_processors, step_clocks = 1235, clocks_of_sum = 0.22, clocks_of_parts = 9600,
                 clocks_of_part = 0.0018;

double along(std::int64_t n, std::int64_t by) {
  const std::int64_t count = (n + by - 1) / by;
  return static_cast<double>(count);
}

// Each processor waits for the one that has most groups.
double clocks(const MeasuredTile& measured, const ProductSize& size, std::int64_t parts = 1) {
  const ProductTile& t = measured.tile;
  const double groups = static_cast<double>(size.tiles(t.rows, t.columns) * parts),
               steps = std::ceil(along(size.depth, t.depth * t.split) / static_cast<double>(parts)),
               sums = t.rows * t.columns, products = sums * steps * t.depth * t.split;
  const double busy = std::ceil(groups / processors) * (products / measured.products_per_clock + sums * clocks_of_sum);
  const double alone = std::max(steps * step_clocks, busy);
  if (parts == 1) return alone;
  return alone + clocks_of_parts + clocks_of_part * static_cast<double>(parts * size.rows * size.columns);
}

}  // namespace

DividedProduct divided(const ProductSize& size, bool may_divide) {
  DividedProduct best;
  double least = std::numeric_limits<double>::infinity();
  for (const MeasuredTile& t : tiles)
    for (const std::int64_t parts : {1, 2, 3, 4, 6, 8}) {
      const double found = clocks(t, size, parts);
      if (found >= least || (parts > 1 && !may_divide)) continue;
      least = found;
      best = {t.tile, parts};
    }
  return best;
}
ProductTile tile_for(const ProductSize& size) { return divided(size, false).tile; }

std::span<const ProductTile> region_tiles() { return of_regions; }
double clocks_of_regions(const ProductTile& t, const ProductSize& size) {
  constexpr double groups_at_once = 3, clocks_of_short_step = 500;
  const double groups = static_cast<double>(size.tiles(t.rows, t.columns)) / processors,
               steps = along(size.depth, t.depth * t.split), sums = t.rows * t.columns;
  const double waiting = steps * clocks_of_short_step * std::max(1.0, groups / groups_at_once),
               busy = groups * sums * (steps * t.depth * t.split / (t.own_rows == 8 ? 64 : 60) + 0.3);
  // Each invocation finishes its sums one after another, and makes the next ones of them.
  return std::max(waiting, busy) + steps * t.depth * t.own_rows * t.own_columns / 2 + 40 * sums / t.invocations();
}

}  // namespace tosaic::shaders
