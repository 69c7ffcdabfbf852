// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "ops/lowering/creation.h"
#include "ops/lowering/functions.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Of integers: those of a bin lie between two of them.
Vals of_integers(Builder& b, Val x, std::int64_t bins, double low, double high) {
  std::vector<std::int64_t> first, last;
  const auto whole = [](double v) { return static_cast<std::int64_t>(std::clamp(v, -0x1p31, 0x1p31 - 1)); };
  const auto bin_of = [&](std::int64_t v) {
    const double at = std::floor((static_cast<double>(v) - low) * static_cast<double>(bins) / (high - low));
    return std::min(static_cast<std::int64_t>(at), bins - 1);
  };
  std::int64_t v = whole(std::ceil(low));
  const std::int64_t end = whole(std::floor(high));
  if (end - v > 65536) b.refuse("aten.histc.range", "integers in a range of more than 65536");
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    first.push_back(v);
    while (v <= end && bin_of(v) == bin) ++v;
    last.push_back(v);
  }
  Val from = b.integers(first, DType::i32, {1, bins}), to = b.integers(last, DType::i32, {1, bins});
  return b.reduce(tosa::op::reduce_sum,
                  b.cast(functions::both(functions::at_least(x, from), functions::greater(to, x)), DType::i32), {0},
                  false);
}

// How many elements fall into each of `bins` equal parts of [min, max], of which the last has both its ends.
Vals lower(Builder& b, const Call& call) {
  Val given = call.tensor("self");
  const std::int64_t bins = call.integer("bins");
  const double low = call.number("min"), high = call.number("max");
  creation::check_size(call, Shape{bins});
  if (bins < 1) b.refuse("aten.histc.bins", std::to_string(bins) + " bins");
  if (!(low < high)) b.refuse("aten.histc.range", "the range depends on the values: give min and max, min being less");
  if (given.dtype() == DType::i32 && !given.type().quantised())
    return of_integers(b, b.reshape(given, {given.shape().elements(), 1}), bins, low, high);
  Val x = b.reshape(functions::widened(given), {given.shape().elements(), 1});
  if (!is_float(given.dtype())) x = b.cast(x, DType::f32);
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < bins; ++i) numbers.push_back(i);
  Val bin = b.unary(tosa::op::floor, b.scaled(b.sub(x, low), static_cast<double>(bins) / (high - low)));
  bin = b.minimum(bin, b.like(bin, static_cast<double>(bins - 1)));
  Val inside = functions::both(functions::at_least(x, b.like(x, low)), functions::at_least(b.like(x, high), x));
  Val hits = functions::equal(bin, b.cast(b.integers(numbers, DType::i32, {1, bins}), bin.dtype()));
  hits = functions::both(hits, inside);
  return b.cast(b.reduce(tosa::op::reduce_sum, b.cast(hits, DType::i32), {0}, false), given.dtype());
}
}  // namespace

AtenOp aten_histc() {
  return {.schemas = {"histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor"},
          .summary = "how many elements fall into each of some equal parts of a range",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"u(0,4,3,20), 4, 0, 4", "x(50), 8, -2, 2", "s(0,7,8), 8, 0, 7", "u(-1.5,1.5,64), 5, -1, 1"}};
}
}  // namespace tosaic
