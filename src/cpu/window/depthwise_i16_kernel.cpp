// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/window/depthwise_kernel.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_i16_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/pairs-inl.h"
#include "cpu/matrix/rescale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The channels of a vector of i16, a chunk, whose sums are in `vectors` vectors of i32. add_products: of `at_once`
// taps; `weights` are those of each vector.
#if HWY_TARGET == HWY_SCALAR
struct Taps {
  static constexpr int at_once = 1, weight_bytes = 4, vectors = 1;
  explicit Taps(std::int64_t) {}
  template <bool all>
  HWY_INLINE void add_products(IntVector (&sums)[1], const std::int16_t* const* taps, std::int64_t at,
                               const IntVector (&weights)[1]) const {
    sums[0] = hn::Add(sums[0], hn::Mul(hn::Set(Ints(), taps[0][at]), weights[0]));
  }
};
#else
// Two taps are interleaved, by halves of each 128 bits: the order of depthwise_i16_channel.
struct Taps {
  using Shorts = hn::Repartition<std::int16_t, Ints>;
  using ShortVector = hn::Vec<Shorts>;
  static constexpr int at_once = 2, weight_bytes = 2, vectors = 2;
  std::int64_t used;  // channels from this chunk on
  explicit Taps(std::int64_t channels) : used(channels) {}

  template <bool all>
  HWY_INLINE ShortVector load(const std::int16_t* from) const {
    if constexpr (all) return hn::LoadU(Shorts(), from);
#if HWY_TARGET <= HWY_AVX3
    return ShortVector{_mm512_maskz_loadu_epi16((std::uint32_t{1} << used) - 1, from)};
#else
    HWY_ALIGN std::int16_t some[HWY_MAX_BYTES / 2] = {};
    std::memcpy(some, from, static_cast<std::size_t>(used) * 2);
    return hn::Load(Shorts(), some);
#endif
  }
  template <bool all>
  HWY_INLINE void add_products(IntVector (&sums)[2], const std::int16_t* const* taps, std::int64_t at,
                               const IntVector (&weights)[2]) const {
    const ShortVector x = load<all>(taps[0] + at), y = load<all>(taps[1] + at);
    sums[0] = add_pairs(sums[0], hn::BitCast(Ints(), hn::InterleaveLower(Shorts(), x, y)), weights[0]);
    sums[1] = add_pairs(sums[1], hn::BitCast(Ints(), hn::InterleaveUpper(Shorts(), x, y)), weights[1]);
  }
};
#endif

constexpr int vectors = Taps::vectors;
std::int64_t chunk_channels() { return vectors * static_cast<std::int64_t>(hn::Lanes(Ints())); }

// RESCALE of a chunk's sums.
struct Chunk {
  RescaleVector lower, upper;  // one and the same where there is one vector
  ShortValues shorts;
  HWY_INLINE Chunk(const DepthwiseI16Call& call, std::int64_t at, std::int64_t upper_at)
      : lower(call.multiplier + at, call.shift + at, call.round + at),
        upper(call.multiplier + upper_at, call.shift + upper_at, call.round + upper_at),
        shorts(call.lowest, call.highest) {}
  template <bool all>
  HWY_INLINE void store(const IntVector (&sums)[vectors], [[maybe_unused]] std::int64_t count, std::int16_t* to) const {
#if HWY_TARGET == HWY_SCALAR
    shorts.store(lower(sums[0]), to);
#else
    const IntVector x = lower(sums[0]), y = upper(sums[1]);
    if constexpr (all) return shorts.store_halves(x, y, to);
    HWY_ALIGN std::int16_t some[HWY_MAX_BYTES / 2];
    shorts.store_halves(x, y, some);
    std::memcpy(to, some, static_cast<std::size_t>(count) * 2);
#endif
  }
};

// Sums of 48 bits, where biases are too large for i32: rare, so not fast.
void store_sums(const DepthwiseI16Call& call, const IntVector (&sums)[vectors], std::int64_t chunk, std::int64_t c,
                std::int64_t* to) {  // of a pixel
  const std::int64_t width = chunk_channels(), lanes = width / vectors;
  for (int v = 0; v < vectors; ++v) {
    HWY_ALIGN std::int32_t some[HWY_MAX_BYTES / 4];
    hn::Store(sums[v], Ints(), some);
    for (std::int64_t i = 0; i < lanes; ++i) {
      const std::int64_t channel = depthwise_i16_channel(vectors, v, i);
      if (c + channel < call.channels) to[c + channel] = call.bias[chunk * width + v * lanes + i] + some[i];
    }
  }
}

// Two pixels at a time share the weights; `fixed` groups are unrolled, 0: any number.
template <int fixed, int pixels, bool all>
HWY_INLINE void chunk_of_pixels(const DepthwiseI16Call& call, std::int64_t first, std::int64_t chunk) {
  const Ints d;
  const std::int64_t width = chunk_channels(), lanes = width / vectors;
  const std::int64_t c = all ? std::min(chunk * width, call.channels - width) : 0;
  const std::int64_t groups = fixed ? fixed : (call.tap_count + Taps::at_once - 1) / Taps::at_once;
  const auto* weight = static_cast<const std::int32_t*>(call.weight) + chunk * groups * width;
  const Taps taps(call.channels - c);
  // The sums of one pixel alone would wait for each other from group to group.
  constexpr int chains = fixed && pixels == 1 ? 2 : 1;
  IntVector acc[pixels * chains][vectors];
#pragma GCC unroll 2
  for (int p = 0; p < pixels * chains; ++p)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      acc[p][v] = p < pixels ? hn::LoadU(d, call.term + chunk * width + v * lanes) : hn::Zero(d);
#pragma GCC unroll 13
  for (std::int64_t g = 0; g < groups; ++g) {
    IntVector w[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) w[v] = hn::LoadU(d, weight + g * width + v * lanes);
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p)
      taps.template add_products<all>(acc[p + g % chains], call.taps + g * Taps::at_once, (first + p) * call.step + c,
                                      w);
  }
  if constexpr (chains > 1)
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) acc[0][v] = hn::Add(acc[0][v], acc[1][v]);
  if (call.sums) {
    for (int p = 0; p < pixels; ++p) store_sums(call, acc[p], chunk, c, call.sums + (first + p) * call.out_step);
    return;
  }
  const Chunk rescaled(call, chunk * width, (chunk + 1) * width - lanes);
#pragma GCC unroll 2
  for (int p = 0; p < pixels; ++p)
    rescaled.template store<all>(acc[p], call.channels - c, call.out + (first + p) * call.out_step + c);
}
template <int fixed, int pixels>
HWY_INLINE void all_channels(const DepthwiseI16Call& call, std::int64_t first) {
  const std::int64_t width = chunk_channels();
  if (call.channels < width) return chunk_of_pixels<fixed, pixels, false>(call, first, 0);
  for (std::int64_t chunk = 0; chunk * width < call.channels; ++chunk)
    chunk_of_pixels<fixed, pixels, true>(call, first, chunk);
}
template <int fixed>
void all_pixels(const DepthwiseI16Call& call) {
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) all_channels<fixed, 2>(call, p);
  if (p < call.pixels) all_channels<fixed, 1>(call, p);
}
constexpr int groups_of(int taps) { return (taps + Taps::at_once - 1) / Taps::at_once; }
void pixels(const DepthwiseI16Call& call) {
  if (call.tap_count == 9) return all_pixels<groups_of(9)>(call);
  if (call.tap_count == 25) return all_pixels<groups_of(25)>(call);
  all_pixels<0>(call);
}

}  // namespace

const DepthwiseI16Kernels& depthwise_i16_kernels_here() {
  static const DepthwiseI16Kernels here{.lanes = static_cast<int>(hn::Lanes(Ints())),
                                        .vectors = vectors,
                                        .group = Taps::at_once,
                                        .weight_bytes = Taps::weight_bytes,
                                        .pixels = &pixels};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(depthwise_i16_kernels_here);
const DepthwiseI16Kernels& depthwise_i16_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_i16_kernels_here)(); }
}  // namespace tosaic::cpu
#endif
