// SPDX-License-Identifier: Apache-2.0
#include "shaders/product_tile.h"

#include <algorithm>

namespace tosaic::shaders {
namespace {

constexpr ProductTile tiles[] = {
    {16, 16, 32, 1, 4, 2},
    {16, 32, 16, 2, 4, 4},
    {32, 32, 8, 4, 4, 4},
    {64, 64, 16, 4, 4, 1},
};

constexpr bool is_power_of_two(std::uint32_t n) { return n && !(n & (n - 1)); }

// Every vector is read by exactly one invocation, and what any device shares is enough.
constexpr bool fits(const ProductTile& t) {
  const std::uint32_t team = t.team();
  return t.rows * t.depth / 4 % team == 0 && t.depth * t.columns / 4 % team == 0 && team % (t.depth / 4) == 0 &&
         team % (t.columns / 4) == 0 && t.own_columns % 4 == 0 && t.shared() * 16 <= 16384 && t.invocations() <= 256 &&
         is_power_of_two(t.depth) && t.rows * t.columns % t.invocations() == 0;
}
static_assert(std::ranges::all_of(tiles, fits));

// Processors of a large GPU, groups that one of them hides the waiting of, clocks of a step that nothing else fills,
// products per clock, and clocks to store a sum. Fitted to what an H200 takes for the layers of some networks.
constexpr double processors = 132, groups_at_once = 3, step_clocks = 500, clocks_of_sum = 0.3;
constexpr double products_per_clock(const ProductTile& t) { return t.rows >= 64 ? 60 : t.own_rows == 1 ? 36 : 46; }

double clocks(const ProductTile& t, const ProductSize& size) {
  const auto along = [](std::int64_t n, std::int64_t by) { return static_cast<double>((n + by - 1) / by); };
  const double groups = static_cast<double>(size.batches) * along(size.rows, t.rows) * along(size.columns, t.columns);
  const double steps = along(size.depth, t.depth * t.split), of_each = groups / processors;
  const double waiting = steps * step_clocks * std::max(1.0, of_each / groups_at_once);
  const double busy =
      of_each * t.rows * t.columns * (steps * t.depth * t.split / products_per_clock(t) + clocks_of_sum);
  return std::max(waiting, busy) + steps * t.depth * t.own_rows * t.own_columns / 2;
}

}  // namespace

const ProductTile& tile_for(const ProductSize& size) {
  return *std::ranges::min_element(tiles, {}, [&](const ProductTile& t) { return clocks(t, size); });
}

}  // namespace tosaic::shaders
