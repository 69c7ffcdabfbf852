// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/window/depthwise_kernel.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_i8_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"
#include "simd/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// A few taps of each channel of a chunk next to each other, and their products with weights. load<count, all>: the
// elements from `at` on of `count` lines, in place of the others is anything; `all`: the chunk is whole.
#if HWY_TARGET == HWY_AVX3_DL
class Taps {  // u8: x + 128
 public:
  static constexpr int group = 4, weight_bytes = 1, offset = 128;
  explicit HWY_INLINE Taps(std::int64_t channels)
      : used_(static_cast<__mmask16>(channels >= 16 ? 0xffff : (1u << channels) - 1)) {
    // Byte 4 c + t of the result is byte 16 t + c.
    alignas(64) std::uint8_t order[64];
    for (int c = 0; c < 16; ++c)
      for (int t = 0; t < 4; ++t) order[4 * c + t] = static_cast<std::uint8_t>(16 * t + c);
    order_ = IntVector{_mm512_load_si512(order)};
  }
  template <int count, bool all>
  HWY_INLINE IntVector load(const std::int8_t* const* line, std::int64_t at) const {
    const auto one = [&](int t) HWY_ATTR {
      return all ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(line[t] + at))
                 : _mm_maskz_loadu_epi8(used_, line[t] + at);
    };
    __m512i x;
    if constexpr (count == 1) {
      x = _mm512_cvtepu8_epi32(one(0));
    } else {
      x = _mm512_inserti32x4(_mm512_zextsi128_si512(one(0)), one(1), 1);
      if constexpr (count > 2) x = _mm512_inserti32x4(x, one(2), 2);
      if constexpr (count > 3) x = _mm512_inserti32x4(x, one(3), 3);
      x = _mm512_permutexvar_epi8(order_.raw, x);
    }
    return IntVector{_mm512_xor_si512(x, _mm512_set1_epi8(-128))};
  }
  static HWY_INLINE IntVector same(std::int8_t x) { return IntVector{_mm512_set1_epi8(static_cast<char>(x ^ -128))}; }
  static HWY_INLINE IntVector add_products(IntVector sums, IntVector x, IntVector weights) {
    return IntVector{_mm512_dpbusd_epi32(sums.raw, x.raw, weights.raw)};
  }

 private:
  IntVector order_;
  __mmask16 used_;
};
#else
class Taps {  // pairs of i16, or one i32
 public:
#if HWY_TARGET == HWY_SCALAR
  static constexpr int group = 1, weight_bytes = 4, offset = 0;
#else
  static constexpr int group = 2, weight_bytes = 2, offset = 0;
#endif
  explicit HWY_INLINE Taps(std::int64_t channels)
      : used_(static_cast<std::size_t>(std::min(channels, static_cast<std::int64_t>(hn::Lanes(Ints()))))) {}
  template <int count, bool all>
  HWY_INLINE IntVector load(const std::int8_t* const* line, std::int64_t at) const {
    const hn::Rebind<std::int8_t, Ints> d8;
    const auto one = [&](int t) HWY_ATTR {
      if constexpr (all) return hn::LoadU(d8, line[t] + at);
      HWY_ALIGN std::int8_t some[HWY_MAX_BYTES / 4] = {};
      std::memcpy(some, line[t] + at, used_);
      return hn::LoadU(d8, some);
    };
    if constexpr (count == 1) return hn::PromoteTo(Ints(), one(0));
#if HWY_TARGET != HWY_SCALAR
    else {
      const hn::Repartition<std::int16_t, Ints> d16;
      const hn::Rebind<std::int8_t, decltype(d16)> both;
      const auto x = one(0), y = one(1);
      if constexpr (hn::MaxLanes(d8) == 16)  // wider, it would interleave halves apart
        return hn::BitCast(Ints(), hn::PromoteTo(d16, hn::Combine(both, hn::InterleaveUpper(d8, x, y),
                                                                  hn::InterleaveLower(d8, x, y))));
      else
        return hn::BitCast(Ints(), hn::PromoteTo(d16, hn::InterleaveLower(both, hn::ZeroExtendVector(both, x),
                                                                          hn::ZeroExtendVector(both, y))));
    }
#endif
  }
  static HWY_INLINE IntVector same(std::int8_t x) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(Ints(), x);
#else
    return hn::BitCast(Ints(), hn::Set(hn::Repartition<std::int16_t, Ints>(), x));
#endif
  }
  static HWY_INLINE IntVector add_products(IntVector sums, IntVector x, IntVector weights) {
#if HWY_TARGET == HWY_SCALAR
    return hn::Add(sums, hn::Mul(x, weights));
#else
    return simd::HWY_NAMESPACE::add_pair_products(Ints(), sums, x, weights);
#endif
  }

 private:
  std::size_t used_;
};
#endif

// The weights of a chunk, group by group.
HWY_INLINE IntVector weights(const DepthwiseI8Channels& of, std::int64_t first) {
  return hn::LoadU(Ints(), static_cast<const std::int32_t*>(of.weight) + first);
}

// RESCALE of a chunk's sums.
struct Chunk {
  RescaleVector rescale;
  Codes codes;
  std::int64_t used;
  HWY_INLINE Chunk(const DepthwiseI8Channels& of, std::int64_t c)
      : rescale(of.multiplier + c, of.shift + c, of.round + c),
        codes(of.zero_point, of.lowest, of.highest),
        used(std::min(of.channels - c, static_cast<std::int64_t>(hn::Lanes(Ints())))) {}
  template <bool all>
  HWY_INLINE void store(IntVector scaled, std::int8_t* to) const {
    if constexpr (all) return codes.store(scaled, to);
    HWY_ALIGN std::int8_t some[HWY_MAX_BYTES];
    codes.store(scaled, some);
    std::memcpy(to, some, static_cast<std::size_t>(used));
  }
};

// ---- Any window, by its taps. Two pixels at a time share the weights; `fixed` groups are unrolled, 0: any number.
template <int fixed, int pixels, bool all>
HWY_INLINE void chunk_of_pixels(const DepthwiseI8Call& call, std::int64_t first, std::int64_t c) {
  const Ints d;
  const DepthwiseI8Channels& of = call.of;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t groups = fixed ? fixed : (call.tap_count + Taps::group - 1) / Taps::group;
  const Taps taps(of.channels - c);
  IntVector acc[pixels];
  for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, of.term + c);
#pragma GCC unroll 5
  for (std::int64_t g = 0; g < groups; ++g) {
    const IntVector w = weights(of, c * groups + g * lanes);
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p)
      acc[p] = Taps::add_products(
          acc[p], taps.load<Taps::group, all>(call.taps + g * Taps::group, (first + p) * call.step + c), w);
  }
  if (call.sums) {
    HWY_ALIGN std::int32_t some[HWY_MAX_BYTES / 4];
    for (int p = 0; p < pixels; ++p) {
      hn::Store(acc[p], d, some);
      std::memcpy(call.sums + (first + p) * of.out_step + c, some,
                  static_cast<std::size_t>(std::min(lanes, of.channels - c)) * 4);
    }
    return;
  }
  const Chunk chunk(of, c);
#pragma GCC unroll 2
  for (int p = 0; p < pixels; ++p)
    chunk.template store<all>(chunk.rescale(acc[p]), of.out + (first + p) * of.out_step + c);
}
template <int fixed, int pixels>
HWY_INLINE void all_channels(const DepthwiseI8Call& call, std::int64_t first) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  std::int64_t c = 0;
  for (; c + lanes <= call.of.channels; c += lanes) chunk_of_pixels<fixed, pixels, true>(call, first, c);
  if (c < call.of.channels) chunk_of_pixels<fixed, pixels, false>(call, first, c);
}
template <int fixed>
void all_pixels(const DepthwiseI8Call& call) {
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) all_channels<fixed, 2>(call, p);
  if (p < call.pixels) all_channels<fixed, 1>(call, p);
}
void pixels(const DepthwiseI8Call& call) {
  call.tap_count == 9 ? all_pixels<(9 + Taps::group - 1) / Taps::group>(call) : all_pixels<0>(call);
}

// ---- Square windows, by columns. A column adds to the sums of all pixels whose window has it: `open` of them. Taps of
// a column are numbered from the first of those on, and are `stride` apart.
template <int side, int stride>
struct OpenPixels {
  static constexpr int open = (side - 1) / stride + 1, groups = (side + Taps::group - 1) / Taps::group;
  IntVector acc[open];

  template <class Column>
  HWY_INLINE void add(const Column& column, const IntVector (&weight)[side][groups], int tap) {
#pragma GCC unroll 7
    for (int g = 0; g < groups; ++g) {
#pragma GCC unroll 7
      for (int i = 0; i < open; ++i)
        if (tap >= i * stride) acc[i] = Taps::add_products(acc[i], column[g], weight[tap - i * stride][g]);
    }
  }
  HWY_INLINE IntVector take_first(IntVector next) {
    const IntVector first = acc[0];
#pragma GCC unroll 7
    for (int i = 1; i < open; ++i) acc[i - 1] = acc[i];
    acc[open - 1] = next;
    return first;
  }
};

template <int side, int stride, bool all>
HWY_NOINLINE void chunk_of_columns(const DepthwiseI8Columns& call, std::int64_t first, std::int64_t last,
                                   std::int64_t c) {
  const Ints d;
  const DepthwiseI8Channels& of = call.of;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using Open = OpenPixels<side, stride>;
  constexpr int groups = Open::groups;
  const Taps taps(of.channels - c);
  const Chunk chunk(of, c);
  const IntVector outside = Taps::same(call.padding), term = hn::LoadU(d, of.term + c);
  IntVector weight[side][groups];
#pragma GCC unroll 7
  for (int tap = 0; tap < side; ++tap) {
#pragma GCC unroll 7
    for (int g = 0; g < groups; ++g) weight[tap][g] = weights(of, c * side * groups + (tap * groups + g) * lanes);
  }
  Open open;
#pragma GCC unroll 7
  for (int i = 0; i < Open::open; ++i) open.acc[i] = term;
  const auto add = [&](std::int64_t x, int tap) HWY_ATTR {
    IntVector column[groups];
    if (static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(call.width)) {
      const std::int64_t at = x * of.channels + c;
#pragma GCC unroll 7
      for (int g = 0; g + 1 < groups; ++g) column[g] = taps.load<Taps::group, all>(call.lines + g * Taps::group, at);
      constexpr int rest = side - (groups - 1) * Taps::group;
      column[groups - 1] = taps.load<rest, all>(call.lines + (groups - 1) * Taps::group, at);
    } else {
#pragma GCC unroll 7
      for (int g = 0; g < groups; ++g) column[g] = outside;
    }
    open.add(column, weight, tap);
  };
  std::int64_t x = first * stride - call.before;
#pragma GCC unroll 7
  for (int tap = 0; tap < side - stride; ++tap) add(x++, tap);
  std::int8_t* out = of.out + (first - call.first) * of.out_step + c;
  for (std::int64_t p = first; p < last; p += 4, out += 4 * of.out_step) {
    IntVector scaled[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
#pragma GCC unroll 2
      for (int tap = side - stride; tap < side; ++tap) add(x++, tap);
      scaled[q] = chunk.rescale(open.take_first(term));
    }
    const std::int64_t count = std::min<std::int64_t>(4, last - p);
    if (all && count == 4) {
      chunk.codes.store_four(scaled, out, of.out_step);
    } else {
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q)
        if (q < count) chunk.template store<all>(scaled[q], out + q * of.out_step);
    }
  }
}
// So many pixels at a time that their lines stay in the nearest cache from chunk to chunk.
template <int side, int stride>
void all_columns(const DepthwiseI8Columns& call) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  const std::int64_t at_once = std::max<std::int64_t>(16, 32768 / (side * stride * call.of.channels) / 4 * 4);
  for (std::int64_t first = call.first; first < call.last; first += at_once) {
    const std::int64_t last = std::min(call.last, first + at_once);
    std::int64_t c = 0;
    for (; c + lanes <= call.of.channels; c += lanes) chunk_of_columns<side, stride, true>(call, first, last, c);
    if (c < call.of.channels) chunk_of_columns<side, stride, false>(call, first, last, c);
  }
}
template <int side>
void either_stride(const DepthwiseI8Columns& call) {
  call.stride == 1 ? all_columns<side, 1>(call) : all_columns<side, 2>(call);
}
void columns(const DepthwiseI8Columns& call) {
  if (call.side == 3) return either_stride<3>(call);
  if (call.side == 5) return either_stride<5>(call);
  either_stride<7>(call);
}

}  // namespace

const DepthwiseI8Kernels& depthwise_i8_kernels_here() {
  static const DepthwiseI8Kernels here{Taps::group, Taps::weight_bytes, Taps::offset, &pixels, &columns};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(depthwise_i8_kernels_here);
const DepthwiseI8Kernels& depthwise_i8_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_i8_kernels_here)(); }

bool takes_columns(std::int64_t height, std::int64_t width, std::int64_t stride) {
  return height == width && (width == 3 || width == 5 || width == 7) && (stride == 1 || stride == 2);
}
}  // namespace tosaic::cpu
#endif
