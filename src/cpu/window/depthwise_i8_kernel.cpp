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
#include "cpu/window/byte_products-inl.h"
#include "cpu/window/depthwise_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// A few taps of each channel of a chunk next to each other, as they are multiplied at once. load<count, all>: the
// elements from `at` on of `count` lines, in place of the others is anything; `all`: the chunk is whole.
#if HWY_TARGET == HWY_AVX3_DL
class Taps : public ByteProducts {  // u8: x + 128
 public:
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

 private:
  IntVector order_;
  __mmask16 used_;
};
#else
class Taps : public ByteProducts {  // pairs of i16, or one i32
 public:
  // Rare, and as long as the loops that it would be a part of.
  static HWY_NOINLINE hn::Vec<hn::Rebind<std::int8_t, Ints> > load_some(const std::int8_t* from, std::size_t count) {
    HWY_ALIGN std::int8_t some[HWY_MAX_BYTES / 4] = {};
    std::memcpy(some, from, count);
    return hn::LoadU(hn::Rebind<std::int8_t, Ints>(), some);
  }
  explicit HWY_INLINE Taps(std::int64_t channels)
      : used_(static_cast<std::size_t>(std::min(channels, static_cast<std::int64_t>(hn::Lanes(Ints()))))) {}
  template <int count, bool all>
  HWY_INLINE IntVector load(const std::int8_t* const* line, std::int64_t at) const {
    const hn::Rebind<std::int8_t, Ints> d8;
    const auto one = [&](int t) HWY_ATTR { return all ? hn::LoadU(d8, line[t] + at) : load_some(line[t] + at, used_); };
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
  QuantisedValues quantised;
  std::int64_t channels;
  HWY_INLINE Chunk(const DepthwiseI8Channels& of, std::int64_t c)
      : rescale(of.multiplier + c, of.shift + c, of.round + c),
        quantised(of.zero_point, of.lowest, of.highest),
        channels(of.channels - c) {}
  template <bool all>
  HWY_INLINE void store(IntVector scaled, std::int8_t* to) const {
    all ? quantised.store(scaled, to) : quantised.store(scaled, channels, to);
  }
};

// ---- Any window, by its taps. Two pixels at a time share the weights; `fixed` groups are unrolled, 0: any number.
template <int fixed, int pixels, bool all>
HWY_INLINE void chunk_of_pixels(const DepthwiseI8Call& call, std::int64_t first, std::int64_t c) {
  const Ints d;
  const DepthwiseI8Channels& of = call.of;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t groups = fixed ? fixed : (call.tap_count + Taps::at_once - 1) / Taps::at_once;
  const Taps taps(of.channels - c);
  IntVector acc[pixels];
  for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, of.term + c);
#pragma GCC unroll 5
  for (std::int64_t g = 0; g < groups; ++g) {
    const IntVector w = weights(of, c * groups + g * lanes);
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p)
      acc[p] = Taps::add_products(
          acc[p], taps.load<Taps::at_once, all>(call.taps + g * Taps::at_once, (first + p) * call.step + c), w);
  }
  if (call.sums) {
    for (int p = 0; p < pixels; ++p) store_first(acc[p], d, of.channels - c, call.sums + (first + p) * of.out_step + c);
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
  call.tap_count == 9 ? all_pixels<(9 + Taps::at_once - 1) / Taps::at_once>(call) : all_pixels<0>(call);
}

// ---- Square windows, by columns: a group is of elements in Taps.
template <int side_, bool all>
struct ChunkOfChannels {
  static constexpr int side = side_, groups = (side + Taps::at_once - 1) / Taps::at_once;
  static constexpr int chains = 1,
                       pixels = side == 3 ? 4 : 1;  // wider windows' products hide what stores by fours save
  using Vector = IntVector;
  const std::int8_t* const* lines;
  Taps taps;
  Vector term, outside;
  Vector weight[side][groups];
  HWY_INLINE ChunkOfChannels(const DepthwiseI8Columns& call, std::int64_t c)
      : lines(call.window.lines),
        taps(call.of.channels - c),
        term(hn::LoadU(Ints(), call.of.term + c)),
        outside(Taps::same(call.window.padding)) {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
#pragma GCC unroll 7
    for (int x = 0; x < side; ++x) {
#pragma GCC unroll 7
      for (int g = 0; g < groups; ++g) weight[x][g] = weights(call.of, c * side * groups + (x * groups + g) * lanes);
    }
  }
  HWY_INLINE void load(std::int64_t at, Vector (&column)[groups]) const {
#pragma GCC unroll 7
    for (int g = 0; g + 1 < groups; ++g)
      column[g] = taps.template load<Taps::at_once, all>(lines + g * Taps::at_once, at);
    constexpr int before = (groups - 1) * Taps::at_once;
    column[groups - 1] = taps.template load<side - before, all>(lines + before, at);
  }
  static HWY_INLINE Vector add_products(Vector sums, Vector x, Vector w) { return Taps::add_products(sums, x, w); }
};

template <int side, int stride, bool all>
HWY_NOINLINE void chunk_of_columns(const DepthwiseI8Columns& call, std::int64_t first, std::int64_t last,
                                   std::int64_t c) {
  const DepthwiseI8Channels& of = call.of;
  const Chunk chunk(of, c);
  std::int8_t* const out = of.out + c;
  using Channels = ChunkOfChannels<side, all>;
  constexpr int pixels = Channels::pixels;
  by_columns<stride>(Channels(call, c), call.window, of.channels, c, first, last,
                     [&](std::int64_t p, const IntVector(&sums)[pixels], std::int64_t count) HWY_ATTR {
                       IntVector scaled[pixels];
#pragma GCC unroll 4
                       for (int q = 0; q < pixels; ++q) scaled[q] = chunk.rescale(sums[q]);
                       std::int8_t* const to = out + (p - call.window.first) * of.out_step;
                       if constexpr (all && pixels == 4)
                         if (count == 4) return chunk.quantised.store_four(scaled, to, of.out_step);
#pragma GCC unroll 4
                       for (int q = 0; q < pixels; ++q)
                         if (q < count) chunk.template store<all>(scaled[q], to + q * of.out_step);
                     });
}
template <int side, int stride>
void all_columns(const DepthwiseI8Columns& call) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  for_strips(call.window, call.of.channels, [&](std::int64_t first, std::int64_t last) {
    std::int64_t c = 0;
    for (; c + lanes <= call.of.channels; c += lanes) chunk_of_columns<side, stride, true>(call, first, last, c);
    if (c < call.of.channels) chunk_of_columns<side, stride, false>(call, first, last, c);
  });
}
#if HWY_TARGET == HWY_SCALAR
constexpr auto* by_columns_here = static_cast<void (*)(const DepthwiseI8Columns&)>(nullptr);
#else
void columns(const DepthwiseI8Columns& call) {
  for_window(call.window, [&](auto side, auto stride) { all_columns<side(), stride()>(call); });
}
constexpr auto* by_columns_here = &columns;
#endif

}  // namespace

const DepthwiseI8Kernels& depthwise_i8_kernels_here() {
  static const DepthwiseI8Kernels here{
      static_cast<int>(hn::Lanes(Ints())), Taps::at_once, Taps::weight_bytes, Taps::offset, &pixels, by_columns_here};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(depthwise_i8_kernels_here);
const DepthwiseI8Kernels& depthwise_i8_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_i8_kernels_here)(); }
}  // namespace tosaic::cpu
#endif
