// SPDX-License-Identifier: Apache-2.0
#include "simd/transpose.h"

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/transpose.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

struct Matrix {
  const std::uint32_t* from;
  std::int64_t from_pitch;
  std::uint32_t* to;
  std::int64_t to_pitch;

  HWY_INLINE void plain(std::int64_t i0, std::int64_t i1, std::int64_t j0, std::int64_t j1) const {
    for (std::int64_t i = i0; i < i1; ++i)
      for (std::int64_t j = j0; j < j1; ++j) to[j * to_pitch + i] = from[i * from_pitch + j];
  }
#if HWY_TARGET != HWY_SCALAR
  HWY_INLINE void four_by_four(std::int64_t i, std::int64_t j) const {
    const hn::FixedTag<std::uint32_t, 4> d;
    const hn::RepartitionToWide<decltype(d)> d64;
    const auto row = [&](std::int64_t r) { return hn::LoadU(d, from + (i + r) * from_pitch + j); };
    const auto a = row(0), b = row(1), c = row(2), e = row(3);
    const auto ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b)), ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
    const auto AB = hn::BitCast(d64, hn::InterleaveUpper(d, a, b)), CE = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
    const auto put = [&](std::int64_t column, auto v) {
      hn::StoreU(hn::BitCast(d, v), d, to + (j + column) * to_pitch + i);
    };
    put(0, hn::InterleaveLower(d64, ab, ce));
    put(1, hn::InterleaveUpper(d64, ab, ce));
    put(2, hn::InterleaveLower(d64, AB, CE));
    put(3, hn::InterleaveUpper(d64, AB, CE));
  }
#endif
};

void transpose(const std::uint32_t* from, std::int64_t from_pitch, std::uint32_t* to, std::int64_t to_pitch,
               std::int64_t rows, std::int64_t columns) {
  const Matrix m{from, from_pitch, to, to_pitch};
  std::int64_t whole_rows = 0, whole_columns = 0;
#if HWY_TARGET != HWY_SCALAR
  whole_rows = rows / 4 * 4;
  whole_columns = columns / 4 * 4;
  // Sixteen rows are a line of the result: it is written whole, and not needed again.
  for (std::int64_t i0 = 0; i0 < whole_rows; i0 += 16) {
    const std::int64_t i1 = i0 + 16 < whole_rows ? i0 + 16 : whole_rows;
    for (std::int64_t j = 0; j < whole_columns; j += 4)
      for (std::int64_t i = i0; i < i1; i += 4) m.four_by_four(i, j);
  }
#endif
  m.plain(0, whole_rows, whole_columns, columns);
  m.plain(whole_rows, rows, 0, columns);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::simd {

HWY_EXPORT(transpose);
void transpose_words(const std::uint32_t* from, std::int64_t from_pitch, std::uint32_t* to, std::int64_t to_pitch,
                     std::int64_t rows, std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(transpose)(from, from_pitch, to, to_pitch, rows, columns);
}

}  // namespace tosaic::simd
#endif
