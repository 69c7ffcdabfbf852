// SPDX-License-Identifier: Apache-2.0
#include "simd/transpose.h"

#include <type_traits>

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
  template <class D>
  HWY_INLINE hn::Vec<D> every_fourth(D d, std::int64_t i, std::int64_t j) const {
    if constexpr (hn::MaxLanes(D()) == 4) {
      return hn::LoadU(d, from + i * from_pitch + j);
    } else {
      const hn::Half<D> half;
      const auto blocks = static_cast<std::int64_t>(hn::Lanes(half));
      return hn::Combine(d, every_fourth(half, i + blocks, j), every_fourth(half, i, j));
    }
  }
  // As many rows as a vector has lanes, four columns: a block of a vector holds four elements of each fourth row.
  template <class D, class V = hn::Vec<D>>
  HWY_INLINE void rows_by_four(D d, V a, V b, V c, V e, std::int64_t i, std::int64_t j) const {
    const hn::RepartitionToWide<D> d64;
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
  // Four times `fours` columns. All of a row is read before the next: where rows are a multiple of 4096 bytes apart,
  // the first-level cache keeps few of them.
  template <int fours, class D>
  HWY_INLINE void square(D d, std::int64_t i, std::int64_t j) const {
    hn::Vec<D> rows[4][fours];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 4
      for (int q = 0; q < fours; ++q) rows[r][q] = every_fourth(d, i + r, j + 4 * q);
#pragma GCC unroll 4
    for (int q = 0; q < fours; ++q) rows_by_four(d, rows[0][q], rows[1][q], rows[2][q], rows[3][q], i, j + 4 * q);
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
  const hn::ScalableTag<std::uint32_t> wide;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  for (std::int64_t i0 = 0; i0 < whole_rows; i0 += 16) {
    const std::int64_t i1 = i0 + 16 < whole_rows ? i0 + 16 : whole_rows;
    std::int64_t j = 0;
    const auto columns_at_once = [&](auto fours) {
      for (; j + 4 * fours() <= whole_columns; j += 4 * fours()) {
        std::int64_t i = i0;
        for (; i + lanes <= i1; i += lanes) m.square<fours()>(wide, i, j);
        for (; i < i1; i += 4) m.square<fours()>(hn::FixedTag<std::uint32_t, 4>(), i, j);
      }
    };
    columns_at_once(std::integral_constant<int, hn::MaxLanes(wide) / 4>());
    columns_at_once(std::integral_constant<int, 1>());
  }
#endif
  m.plain(0, whole_rows, whole_columns, columns);
  m.plain(whole_rows, rows, 0, columns);
}

template <class T>
void interleave_of(const void* rows_of, std::int64_t pitch, void* result, std::int64_t rows, std::int64_t columns) {
  const T* from = static_cast<const T*>(rows_of);
  T* to = static_cast<T*>(result);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto row = [&](std::int64_t i, std::int64_t j) HWY_ATTR { return hn::LoadU(d, from + i * pitch + j); };
  std::int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    T* at = to + j * rows;
    if (rows == 2)
      hn::StoreInterleaved2(row(0, j), row(1, j), d, at);
    else if (rows == 3)
      hn::StoreInterleaved3(row(0, j), row(1, j), row(2, j), d, at);
    else
      hn::StoreInterleaved4(row(0, j), row(1, j), row(2, j), row(3, j), d, at);
  }
  for (; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) to[j * rows + i] = from[i * pitch + j];
}

template <class T>
void separate_of(const void* columns_of, void* result, std::int64_t pitch, std::int64_t rows, std::int64_t columns) {
  const T* from = static_cast<const T*>(columns_of);
  T* to = static_cast<T*>(result);
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t j = 0;
  for (; j + lanes <= columns; j += lanes) {
    const T* at = from + j * rows;
    hn::Vec<decltype(d)> v[4];
    if (rows == 2)
      hn::LoadInterleaved2(d, at, v[0], v[1]);
    else if (rows == 3)
      hn::LoadInterleaved3(d, at, v[0], v[1], v[2]);
    else
      hn::LoadInterleaved4(d, at, v[0], v[1], v[2], v[3]);
    for (std::int64_t i = 0; i < rows; ++i) hn::StoreU(v[i], d, to + i * pitch + j);
  }
  for (; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) to[i * pitch + j] = from[j * rows + i];
}

void interleave(const void* from, std::int64_t from_pitch, void* to, std::int64_t rows, std::int64_t columns,
                std::size_t element) {
  if (element == 1) return interleave_of<std::uint8_t>(from, from_pitch, to, rows, columns);
  if (element == 2) return interleave_of<std::uint16_t>(from, from_pitch, to, rows, columns);
  interleave_of<std::uint32_t>(from, from_pitch, to, rows, columns);
}

void separate(const void* from, void* to, std::int64_t to_pitch, std::int64_t rows, std::int64_t columns,
              std::size_t element) {
  if (element == 1) return separate_of<std::uint8_t>(from, to, to_pitch, rows, columns);
  if (element == 2) return separate_of<std::uint16_t>(from, to, to_pitch, rows, columns);
  separate_of<std::uint32_t>(from, to, to_pitch, rows, columns);
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

HWY_EXPORT(interleave);
void interleave(const void* from, std::int64_t from_pitch, void* to, std::int64_t rows, std::int64_t columns,
                std::size_t element) {
  HWY_DYNAMIC_DISPATCH(interleave)(from, from_pitch, to, rows, columns, element);
}

HWY_EXPORT(separate);
void separate(const void* from, void* to, std::int64_t to_pitch, std::int64_t rows, std::int64_t columns,
              std::size_t element) {
  HWY_DYNAMIC_DISPATCH(separate)(from, to, to_pitch, rows, columns, element);
}

}  // namespace tosaic::simd
#endif
