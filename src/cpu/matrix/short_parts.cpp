// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/short_parts.h"

#include <algorithm>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/short_parts.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// The compiler vectorises these loops.
HWY_INLINE std::int16_t lower(std::int16_t x) { return static_cast<std::int8_t>(x); }
HWY_INLINE std::int16_t upper(std::int16_t x) { return static_cast<std::int16_t>((x >> 8) + ((x >> 7) & 1)); }

// A pair of rows of B that lie next to each other.
HWY_INLINE void pack_rows(const std::int16_t* HWY_RESTRICT first, const std::int16_t* HWY_RESTRICT second,
                          std::int64_t columns, std::int64_t lanes, std::int16_t* HWY_RESTRICT to) {
  std::int16_t* HWY_RESTRICT low = to + 2 * lanes;
  for (std::int64_t j = 0; j < columns; ++j) {
    const std::int16_t x = first[j], y = second[j];
    to[2 * j] = upper(x);
    to[2 * j + 1] = upper(y);
    low[2 * j] = lower(x);
    low[2 * j + 1] = lower(y);
  }
}
void pack(const ShortColumns& of, std::int64_t lanes, std::int16_t* to) {
  constexpr std::int16_t zeros[HWY_MAX_BYTES / 4] = {};
  const std::int64_t pairs = std::max<std::int64_t>(1, (of.k + 1) / 2);
  if (of.columns < lanes) std::fill_n(to, pairs * 4 * lanes, std::int16_t{0});
  const auto row = [&](std::int64_t i) { return i < of.k ? of.from + i * of.k_stride : zeros; };
  if (of.column_stride == 1) {
    for (std::int64_t g = 0; g < pairs; ++g)
      pack_rows(row(2 * g), row(2 * g + 1), of.columns, lanes, to + g * 4 * lanes);
    return;
  }
  for (std::int64_t j = 0; j < of.columns; ++j) {
    const std::int16_t* from = of.from + j * of.column_stride;
    for (std::int64_t i = 0; i < 2 * pairs; ++i) {
      const std::int16_t x = i < of.k ? from[i * of.k_stride] : std::int16_t{0};
      std::int16_t* at = to + i / 2 * 4 * lanes + 2 * j + i % 2;
      at[0] = upper(x);
      at[2 * lanes] = lower(x);
    }
  }
}

void join(const std::int32_t* HWY_RESTRICT sums, std::int64_t rows, std::int64_t lanes, std::int64_t columns, bool add,
          std::int64_t* HWY_RESTRICT to, std::int64_t stride) {
  for (std::int64_t r = 0; r < rows; ++r, sums += 2 * lanes, to += stride) {
    const std::int32_t* HWY_RESTRICT low = sums + lanes;
    if (add)
      for (std::int64_t j = 0; j < columns; ++j) to[j] += std::int64_t{sums[j]} * 256 + low[j];
    else
      for (std::int64_t j = 0; j < columns; ++j) to[j] = std::int64_t{sums[j]} * 256 + low[j];
  }
}

}  // namespace

const ShortParts& short_parts_here() {
  static constexpr ShortParts here{&pack, &join};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(short_parts_here);
const ShortParts& short_parts() { return HWY_DYNAMIC_DISPATCH(short_parts_here)(); }
}  // namespace tosaic::cpu
#endif
