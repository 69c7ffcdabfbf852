// SPDX-License-Identifier: Apache-2.0
// Operators on shapes (TOSA 1.1, EXT-SHAPE): the row and the loop, so that an operator's file says what happens to one
// size. Private to src/ops.
#pragma once
#include <optional>

#include "ops/definitions/row.h"

namespace tosaic::tosa {

// A size that an operator computes; nullopt: its operands are not allowed, or it does not fit 64 bits.
using Size = std::optional<std::int64_t>;

Op shape_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::size_t operands,
             Status (*eval)(const Run&));
// The operands hold as many sizes.
Check same_lengths(const View& view);
Status store_size(const Run& run, std::size_t i, Size size);

template <Size (*f)(std::int64_t)>
Status map_sizes(const Run& run) {
  const std::vector<std::int64_t> a = integers_of(run.in[0]);
  for (std::size_t i = 0; i < a.size(); ++i) TOSAIC_CHECK(store_size(run, i, f(a[i])));
  return {};
}
template <Size (*f)(std::int64_t, std::int64_t)>
Status map_sizes(const Run& run) {
  const std::vector<std::int64_t> a = integers_of(run.in[0]), b = integers_of(run.in[1]);
  for (std::size_t i = 0; i < a.size(); ++i) TOSAIC_CHECK(store_size(run, i, f(a[i], b[i])));
  return {};
}

}  // namespace tosaic::tosa
