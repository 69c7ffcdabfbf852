// SPDX-License-Identifier: Apache-2.0
// Depthwise products of one row of pixels by columns of a square window, for inclusion in files compiled per
// instruction set. A column adds to the sums of all pixels whose window has it: those are open.
#if defined(TOSAIC_CPU_DEPTHWISE_COLUMNS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_DEPTHWISE_COLUMNS_INL_H
#undef TOSAIC_CPU_DEPTHWISE_COLUMNS_INL_H
#else
#define TOSAIC_CPU_DEPTHWISE_COLUMNS_INL_H
#endif
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "cpu/window/depthwise_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class Chunk, int stride>
struct OpenPixels {
  using Vector = typename Chunk::Vector;
  static constexpr int open = (Chunk::side - 1) / stride + 1, chains = Chunk::chains;
  Vector sums[open][chains];

  explicit HWY_INLINE OpenPixels(Vector term) {
#pragma GCC unroll 7
    for (int i = 0; i < open; ++i) begin(i, term);
  }
  // The column that is tap number `tap` of the first pixel's window, and `stride` less of each next one's.
  HWY_INLINE void add(const Chunk& chunk, const Vector (&column)[Chunk::groups], int tap) {
#pragma GCC unroll 24
    for (int g = 0; g < Chunk::groups; ++g) {
#pragma GCC unroll 7
      for (int i = 0; i < open; ++i)
        if (tap >= i * stride)
          sums[i][g % chains] = Chunk::add_products(sums[i][g % chains], column[g], chunk.weight[tap - i * stride][g]);
    }
  }
  HWY_INLINE Vector take_first(Vector next) {
    Vector first = sums[0][0];
#pragma GCC unroll 4
    for (int k = 1; k < chains; ++k) first = hwy::HWY_NAMESPACE::Add(first, sums[0][k]);
#pragma GCC unroll 7
    for (int i = 1; i < open; ++i)
#pragma GCC unroll 4
      for (int k = 0; k < chains; ++k) sums[i - 1][k] = sums[i][k];
    begin(open - 1, next);
    return first;
  }

 private:
  HWY_INLINE void begin(int i, Vector term) {
    sums[i][0] = term;
#pragma GCC unroll 4
    for (int k = 1; k < chains; ++k) sums[i][k] = hwy::HWY_NAMESPACE::Xor(term, term);
  }
};

// Pixels [first, last) of the channels from c on that `chunk` knows: its side, in how many groups it holds the elements
// of a column, the weights of each, what sums begin with (`term`), what an element outside is, how many sums a pixel
// has side by side (`chains`: so as not to wait for each other), and how many pixels are finished at once. finish(p,
// sums, count): those of so many from p on, of which the first `count` are wanted.
template <int stride, class Chunk, class T, class Finish>
HWY_INLINE void by_columns(const Chunk& chunk, const DepthwiseColumns<T>& window, std::int64_t channels, std::int64_t c,
                           std::int64_t first, std::int64_t last, const Finish& finish) {
  using Vector = typename Chunk::Vector;
  constexpr int side = Chunk::side;
  OpenPixels<Chunk, stride> open(chunk.term);
  const auto add = [&](std::int64_t x, int tap) HWY_ATTR {
    Vector column[Chunk::groups];
    if (static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(window.width)) {
      chunk.load(x * channels + c, column);
    } else {
#pragma GCC unroll 24
      for (int g = 0; g < Chunk::groups; ++g) column[g] = chunk.outside;
    }
    open.add(chunk, column, tap);
  };
  std::int64_t x = first * stride - window.before;
#pragma GCC unroll 7
  for (int tap = 0; tap < side - stride; ++tap) add(x++, tap);
  for (std::int64_t p = first; p < last; p += Chunk::pixels) {
    Vector sums[Chunk::pixels];
#pragma GCC unroll 4
    for (int q = 0; q < Chunk::pixels; ++q) {
#pragma GCC unroll 2
      for (int tap = side - stride; tap < side; ++tap) add(x++, tap);
      sums[q] = open.take_first(chunk.term);
    }
    finish(p, sums, std::min<std::int64_t>(Chunk::pixels, last - p));
  }
}

// work(first, last): so many pixels at a time that their lines stay in the nearest cache from chunk to chunk.
template <class T, class Work>
HWY_INLINE void for_strips(const DepthwiseColumns<T>& window, std::int64_t channels, const Work& work) {
  const std::int64_t bytes = window.side * window.stride * channels * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t at_once = std::max<std::int64_t>(16, 32768 / bytes / 4 * 4);
  for (std::int64_t first = window.first; first < window.last; first += at_once)
    work(first, std::min(window.last, first + at_once));
}

// work(first, last, chunk, channel): of such strips the pixels, and chunks of `lanes` channels, whose last one ends
// with the last channel and may begin within the one before.
template <class Call, class Work>
HWY_INLINE void for_chunks(const Call& call, std::int64_t lanes, const Work& work) {
  for_strips(call.window, call.of.channels, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = 0; chunk * lanes < call.of.channels; ++chunk)
      work(first, last, chunk, std::min(chunk * lanes, call.of.channels - lanes));
  });
}

// f(value) as the constant of `all` that it is.
template <int... all, class F>
HWY_INLINE void as_constant(std::int64_t value, std::integer_sequence<int, all...>, const F& f) {
  ((value == all ? f(std::integral_constant<int, all>()) : void()), ...);
}
// work(side, stride) as constants: of the windows that takes_columns.
template <class T, class Work>
HWY_INLINE void for_window(const DepthwiseColumns<T>& window, const Work& work) {
  as_constant(window.side, ColumnSides(), [&](auto side) {
    as_constant(window.stride, ColumnStrides(), [&](auto stride) { work(side, stride); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
