// SPDX-License-Identifier: Apache-2.0
// Running folds along a dim, by doubling: after step k each element holds what folds the 2^k elements that end at it,
// log2(n) steps in all.
#pragma once
#include <vector>

#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {

// The largest (smallest) element up to each place and where it stands: of equals the last one, as PyTorch says it;
// a NaN stays from where it stands on.
struct RunningExtreme {
  Val values, indices;  // indices in i32
};
inline RunningExtreme running_extreme(Val x, int axis, bool largest) {
  Builder& b = x.builder();
  const std::int64_t size = x.dim(axis);
  std::vector<std::int64_t> iota, dims(static_cast<std::size_t>(x.rank()), 1);
  for (std::int64_t i = 0; i < size; ++i) iota.push_back(i);
  dims[static_cast<std::size_t>(axis)] = size;
  RunningExtreme r{x, b.broadcast_to(b.integers(iota, DType::i32, Shape(dims)), x.shape())};
  const auto comparable = [&](Val v) { return v.type().quantised() ? b.as_i32(v) : v; };
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    const auto first = [&](Val v) { return b.slice_axis(v, axis, 0, shift); };
    const auto before = [&](Val v) { return b.slice_axis(v, axis, 0, size - shift); };
    const auto here = [&](Val v) { return b.slice_axis(v, axis, shift, size - shift); };
    const Val u = comparable(before(r.values)), v = comparable(here(r.values));
    Val stays = largest ? functions::at_least(v, u) : functions::at_least(u, v);
    if (is_float(v.dtype())) stays = functions::either(stays, functions::negation(functions::equal(v, v)));
    const Val index = b.select(stays, here(r.indices), before(r.indices));
    const Val value =
        largest ? b.maximum(here(r.values), before(r.values)) : b.minimum(here(r.values), before(r.values));
    r = {b.concat({first(r.values), value}, axis), b.concat({first(r.indices), index}, axis)};
  }
  return r;
}

// The whole lowering of cummax and cummin.
inline Vals lower_running_extreme(Builder& b, const Call& call, bool largest) {
  Val x = call.tensor("self");
  if (x.rank() == 0) return Vals{x, b.scalar(0, DType::i32)};
  const DType type = x.dtype();
  const bool compared = x.type().quantised() || is_float(type) || type == DType::i64;
  const RunningExtreme r = running_extreme(compared ? x : b.cast(x, DType::i32), call.axis("dim", x.rank()), largest);
  return Vals{compared ? r.values : b.cast(r.values, type), r.indices};
}

}  // namespace tosaic
