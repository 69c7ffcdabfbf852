// SPDX-License-Identifier: Apache-2.0
#include "shaders/product_tile.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tosaic::shaders {
namespace {

constexpr ProductTile tiles[] = {
    {8, 8, 16, 1, 4, 8},   {16, 16, 32, 1, 4, 2}, {16, 32, 16, 2, 4, 4},   {32, 32, 8, 4, 4, 4},
    {64, 64, 16, 4, 4, 1}, {32, 64, 16, 8, 4, 2}, {64, 64, 8, 8, 4, 2, 2},
};

// Of products whose depth is divided among groups.
constexpr ProductTile large{64, 64, 16, 8, 8, 1, 2}, small{32, 64, 16, 8, 4, 2};

// Of products that are long and leave no processor idle, the widest first.
constexpr ProductTile of_long[] = {{64, 128, 8, 8, 8, 1, 4}, {64, 64, 16, 8, 4, 1, 2}};

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
static_assert(std::ranges::all_of(tiles, fits) && fits(large) && fits(small) && std::ranges::all_of(of_long, fits) &&
              std::ranges::all_of(of_regions, fits));

// Processors of a large GPU, groups that one of them hides the waiting of, clocks of a step that nothing else fills,
// products per clock, and clocks to store a sum. Fitted to what an H200 takes for the layers of some networks.
constexpr double processors = many_processors, groups_at_once = 3, step_clocks = 500;
constexpr double products_per_clock(const ProductTile& t) {
  return t.own_rows == 8 && t.rows == 64 ? 72 : t.own_rows == 8 ? 64 : t.rows >= 64 ? 60 : t.own_rows == 1 ? 36 : 46;
}
constexpr double clocks_of_sum(const ProductTile& t) { return t.own_rows == 8 ? 0.6 : 0.3; }

double clocks(const ProductTile& t, const ProductSize& size) {
  const auto along = [](std::int64_t n, std::int64_t by) {
    const std::int64_t count = (n + by - 1) / by;
    return static_cast<double>(count);
  };
  const double groups = static_cast<double>(size.batches) * along(size.rows, t.rows) * along(size.columns, t.columns);
  if (t.rows == 64 && t.own_rows == 8 && groups < 2 * processors) return std::numeric_limits<double>::infinity();
  const double steps = along(size.depth, t.depth * t.split), of_each = groups / processors;
  const double waiting = steps * step_clocks * std::max(1.0, of_each / groups_at_once);
  const double busy =
      of_each * t.rows * t.columns * (steps * t.depth * t.split / products_per_clock(t) + clocks_of_sum(t));
  return std::max(waiting, busy) + steps * t.depth * t.own_rows * t.own_columns / 2;
}

}  // namespace

const ProductTile& tile_for(const ProductSize& size) {
  return *std::ranges::min_element(tiles, {}, [&](const ProductTile& t) { return clocks(t, size); });
}

std::span<const ProductTile> region_tiles() { return of_regions; }
double clocks_of_regions(const ProductTile& tile, const ProductSize& size) {
  // Each invocation finishes its sums one after another, and makes the next ones of them.
  return clocks(tile, size) + 40.0 * tile.rows * tile.columns / tile.invocations();
}

// As measured on an H200: a second dispatch costs 4 us.
DividedProduct divided(const ProductSize& size, bool may_divide) {
  constexpr std::int64_t long_depth = 1024, longest_depth = 2048, most_parts = 8;
  const std::int64_t few = size.tiles(small.rows, small.columns), many = size.tiles(large.rows, large.columns);
  if (may_divide && size.depth >= longest_depth && many > many_processors * 2 / 3 && many <= many_processors)
    return {large, 4};
  const auto parts = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(2 * many_processors / std::max<std::int64_t>(few, 1))));
  if (may_divide && size.depth >= long_depth && parts > 1) return {small, std::min(parts, most_parts)};
  for (const ProductTile& t : of_long)
    if (size.depth >= long_depth / 2 && size.tiles(t.rows, t.columns) > many_processors * 3 / 2) return {t};
  return {tile_for(size)};
}

}  // namespace tosaic::shaders
