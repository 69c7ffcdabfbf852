// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/sorting_network.h"

#include <bit>
#include <limits>
#include <utility>

#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"

namespace tosaic {
namespace {

struct Elements {
  Val keys, places;  // of one shape; no two places are the same
};

Elements shaped(const Elements& e, std::int64_t rows, std::int64_t columns) {
  Builder& b = e.keys.builder();
  return {b.reshape(e.keys, {rows, columns}), b.reshape(e.places, {rows, columns})};
}
Elements columns_of(const Elements& e, std::int64_t first, std::int64_t count) {
  Builder& b = e.keys.builder();
  return {b.slice_axis(e.keys, 1, first, count), b.slice_axis(e.places, 1, first, count)};
}
Elements mirrored(const Elements& e) {
  Builder& b = e.keys.builder();
  const auto mirror = [&](Val x) {
    return x.dim(1) == 1 ? x : b.tosa(tosa::op::reverse, {x}, {{"axis", std::int64_t{1}}});
  };
  return {mirror(e.keys), mirror(e.places)};
}

// Of each row of 2 * half elements, the first half against the second, which may be read backwards.
Elements compared(const Elements& all, std::int64_t half, bool backwards, bool descending) {
  Builder& b = all.keys.builder();
  const Elements e = shaped(all, all.keys.shape().elements() / (2 * half), 2 * half);
  const Elements low = columns_of(e, 0, half);
  const Elements high = backwards ? mirrored(columns_of(e, half, half)) : columns_of(e, half, half);
  const Val further = descending ? functions::greater(high.keys, low.keys) : functions::greater(low.keys, high.keys);
  const Val tied = functions::both(functions::equal(low.keys, high.keys), functions::greater(low.places, high.places));
  const Val swaps = functions::either(further, tied);
  const auto chosen = [&](const Elements& swapped, const Elements& kept) {
    return Elements{b.select(swaps, swapped.keys, kept.keys), b.select(swaps, swapped.places, kept.places)};
  };
  const Elements first = chosen(high, low), behind = chosen(low, high);
  const Elements second = backwards ? mirrored(behind) : behind;
  return {b.concat({first.keys, second.keys}, 1), b.concat({first.places, second.places}, 1)};
}

}  // namespace

Val order_by_network(Val keys, bool descending) {
  Builder& b = keys.builder();
  const std::int64_t rows = keys.dim(0), n = keys.dim(1);
  const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  const bool real = is_float(keys.dtype());
  // Places decide between equal keys: what fills a row up stands behind all, and NaN, whose key is infinity, before
  // (descending) or behind all that has it. Floats hold them, as a profile of floats compares no integers.
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < size; ++i) places.push_back(i < n ? i : i + 2 * size);
  const double infinity = std::numeric_limits<double>::infinity();
  const double highest = real ? infinity : std::numeric_limits<std::int32_t>::max(),
               lowest = real ? -infinity : std::numeric_limits<std::int32_t>::min();
  Elements all{keys, b.broadcast_to(b.integers(places, real ? DType::f32 : DType::i32, {1, size}), {rows, size})};
  if (size > n) all.keys = b.pad(keys, {0, 0}, {0, size - n}, descending ? lowest : highest);
  if (real) {
    const Val ordinary = functions::equal(all.keys, all.keys);
    const auto aside = static_cast<double>(descending ? -size : size);
    all.places = b.select(ordinary, all.places, b.add(all.places, aside));
    all.keys = b.select(ordinary, all.keys, b.like(all.keys, infinity));
  }
  for (std::int64_t half = 1; half < size; half *= 2) {  // sorted halves become sorted rows
    all = compared(all, half, true, descending);
    for (std::int64_t part = half / 2; part > 0; part /= 2) all = compared(all, part, false, descending);
  }
  Val order = columns_of(shaped(all, rows, size), 0, n).places;
  if (!real) return order;
  const auto length = static_cast<double>(size);
  order = descending ? b.select(functions::less(order, 0.0), b.add(order, length), order)
                     : b.select(functions::less(order, length), order, b.add(order, -length));
  return b.cast(order, DType::i32);
}

}  // namespace tosaic
