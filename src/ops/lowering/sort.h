// SPDX-License-Identifier: Apache-2.0
// Sorting without a sort operator: an element's index is the number of elements that go before it, for which all pairs
// are compared; of more than a few thousand elements, by a network.
#pragma once
#include <string>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/lowering/index.h"
#include "ops/lowering/sorting_network.h"
#include "ops/op.h"

namespace tosaic {

struct Sorted {
  Val values, indices;  // shaped like the input; indices in i32
};
// Comparisons with NaN are false: so far no NaN goes before a number, and each has index 0. PyTorch takes NaN for
// larger than infinity, and NaNs among themselves stay in their order.
inline Val with_nan_last(Val keys, Val place, bool descending) {
  Builder& b = keys.builder();
  Val ordinary = b.binary(tosa::op::equal, keys, keys),
      nan = b.cast(b.unary(tosa::op::logical_not, ordinary), DType::i32);
  Val rank = b.sub(b.aten(aten::op::cumsum, {nan}, {{"dim", std::int64_t{1}}}), nan);
  if (descending) return b.select(ordinary, b.add(place, b.reduce(tosa::op::reduce_sum, nan, {1}, true)), rank);
  return b.select(ordinary, place,
                  b.add(rank, b.reduce(tosa::op::reduce_sum, b.cast(ordinary, DType::i32), {1}, true)));
}

// The same as order_by_network, for fewer elements; keys may be i64.
inline Val order_by_pairs(Val keys, bool descending) {
  Builder& b = keys.builder();
  const std::int64_t lines = keys.dim(0), n = keys.dim(1);
  Val own = b.reshape(keys, {lines, n, 1}), other = b.reshape(keys, {lines, 1, n});
  // before[i, j]: j goes before i, by its key, or by its position when the keys are equal.
  std::vector<std::int64_t> earlier, positions;
  for (std::int64_t i = 0; i < n; ++i) {
    positions.push_back(i);
    for (std::int64_t j = 0; j < n; ++j) earlier.push_back(j < i);
  }
  Val first = descending ? b.binary(tosa::op::greater, other, own) : b.binary(tosa::op::greater, own, other);
  Val tied =
      b.tosa(tosa::op::logical_and, {b.binary(tosa::op::equal, own, other),
                                     b.broadcast_to(b.integers(earlier, DType::boolean, {1, n, n}), {lines, n, n})});
  Val place =
      b.reduce(tosa::op::reduce_sum, b.cast(b.tosa(tosa::op::logical_or, {first, tied}), DType::i32), {2}, false);
  if (is_float(keys.dtype())) place = with_nan_last(keys, place, descending);
  Val iota = b.broadcast_to(b.integers(positions, DType::i32, {1, n, 1}), {lines, n, 1});
  return b.reshape(scattered(b.filled(0, DType::i32, {lines, n, 1}), place, iota), {lines, n});
}

inline Sorted sorted_along(Builder& b, Val x, int axis, bool descending) {
  const std::int64_t n = x.dim(axis), lines = x.shape().elements() / n;
  constexpr std::int64_t most_compared = 4096, most = std::int64_t{1} << 20;
  const bool by_network = n > most_compared;
  if (by_network && (n > most || x.dtype() == DType::i64 || (b.spec() && b.spec()->product)))
    b.refuse("aten.sort.size", "sorting " + std::to_string(n) + " elements takes a network of thousands of operators");
  std::vector<int> last, back;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? x.rank() - 1 : i - 1);
  }
  last.push_back(axis);
  Val moved = b.transpose(x, last), flat = b.reshape(moved, {lines, n, 1});
  Val keys = b.reshape(x.type().quantised()                             ? b.as_i32(flat)
                       : is_float(x.dtype()) || x.dtype() == DType::i64 ? flat
                                                                        : b.cast(flat, DType::i32),
                       {lines, n});
  Val order = by_network ? order_by_network(keys, descending) : order_by_pairs(keys, descending);
  Val values = gathered(flat, order);
  auto shaped = [&](Val v) { return b.transpose(b.reshape(v, moved.shape()), back); };
  return {shaped(values), shaped(order)};
}

}  // namespace tosaic
