// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/depthwise_kernel.h"

#include <algorithm>
#include <cstring>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"
#include "simd/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
constexpr std::int64_t most_lanes = HWY_MAX_BYTES / 4;

// ---- f32. Two pixels at a time share the weights; `fixed` taps are unrolled, 0: any number. The last vector of
// channels may overlap the one before it. There are as many as D has lanes, or less where it has few.
template <class D, int fixed, int pixels>
HWY_INLINE void pixels_f32(const DepthwiseF32Call& call, std::int64_t first) {
  const D d;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t taps = fixed ? fixed : call.tap_count, channels = call.channels;
  const float* tap[fixed ? fixed : 1];
  for (int t = 0; t < fixed; ++t) tap[t] = call.taps[t] + first * call.step;
  auto tap_at = [&](std::int64_t t) { return fixed ? tap[t] : call.taps[t] + first * call.step; };
  const V lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
  float* out = call.out + first * call.out_step;
  for (std::int64_t next = 0; next < channels && channels >= lanes; next += lanes) {
    const std::int64_t c = std::min(next, channels - lanes);
    V acc[pixels];
    for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, call.bias + c);
#pragma GCC unroll 9
    for (std::int64_t t = 0; t < taps; ++t) {
      const V w = hn::LoadU(d, call.weight + t * call.weight_stride + c);
      const float* x = tap_at(t) + c;
#pragma GCC unroll 2
      for (int p = 0; p < pixels; ++p) acc[p] = hn::MulAdd(hn::LoadU(d, x + p * call.step), w, acc[p]);
    }
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p)
      hn::StoreU(hn::Min(highest, hn::Max(lowest, acc[p])), d, out + p * call.out_step + c);
  }
  if (channels >= lanes) return;
  const auto rest = static_cast<std::size_t>(channels) * sizeof(float);
  for (int p = 0; p < pixels; ++p) {
    V acc = hn::LoadU(d, call.bias);
    for (std::int64_t t = 0; t < taps; ++t) {
      HWY_ALIGN float x[most_lanes] = {};
      std::memcpy(x, tap_at(t) + p * call.step, rest);
      acc = hn::MulAdd(hn::Load(d, x), hn::LoadU(d, call.weight + t * call.weight_stride), acc);
    }
    HWY_ALIGN float y[most_lanes];
    hn::Store(hn::Min(highest, hn::Max(lowest, acc)), d, y);
    std::memcpy(out + p * call.out_step, y, rest);
  }
}

template <class D, int fixed>
void pixels_of_row(const DepthwiseF32Call& call) {
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) pixels_f32<D, fixed, 2>(call, p);
  if (p < call.pixels) pixels_f32<D, fixed, 1>(call, p);
}
template <int fixed>
void row_f32(const DepthwiseF32Call& call) {
  const auto takes = [&](auto d) { return static_cast<std::int64_t>(hn::Lanes(d)) <= call.channels; };
  if (takes(Floats())) return pixels_of_row<Floats, fixed>(call);
  if (takes(hn::CappedTag<float, 8>())) return pixels_of_row<hn::CappedTag<float, 8>, fixed>(call);
  pixels_of_row<hn::CappedTag<float, 4>, fixed>(call);
}
void depthwise_f32(const DepthwiseF32Call& call) {
  if (call.tap_count == 9) return row_f32<9>(call);
  if (call.tap_count == 25) return row_f32<25>(call);
  row_f32<0>(call);
}

// ---- i8
#if HWY_TARGET == HWY_AVX3_DL
constexpr int group = 4, weight_bytes = 1, offset = 128;

// Byte 4 c + t of the result is byte 16 t + c: the four taps of a channel next to each other.
HWY_INLINE __m512i interleaving() {
  alignas(64) std::uint8_t order[64];
  for (int c = 0; c < 16; ++c)
    for (int t = 0; t < 4; ++t) order[4 * c + t] = static_cast<std::uint8_t>(16 * t + c);
  return _mm512_load_si512(order);
}
template <bool all>
HWY_INLINE __m512i four_taps(const std::int8_t* const* tap, std::int64_t at, __mmask16 used, __m512i order) {
  auto load = [&](int t) HWY_ATTR {
    return all ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(tap[t] + at))
               : _mm_maskz_loadu_epi8(used, tap[t] + at);
  };
  __m512i x = _mm512_castsi128_si512(load(0));
  x = _mm512_inserti32x4(x, load(1), 1);
  x = _mm512_inserti32x4(x, load(2), 2);
  x = _mm512_inserti32x4(x, load(3), 3);
  return _mm512_xor_si512(_mm512_permutexvar_epi8(order, x), _mm512_set1_epi8(-128));
}

template <int fixed, int pixels, bool all>
HWY_INLINE void chunk_i8(const DepthwiseI8Call& call, std::int64_t first, std::int64_t c, __m512i order) {
  const Ints d;
  const std::int64_t groups = fixed ? fixed : (call.tap_count + 3) / 4;
  const auto* weight = static_cast<const std::int8_t*>(call.weight) + c * groups * 4;
  const __mmask16 used = all ? 0xffff : static_cast<__mmask16>((1u << (call.channels - c)) - 1);
  IntVector acc[pixels];
  for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, call.term + c);
#pragma GCC unroll 3
  for (std::int64_t g = 0; g < groups; ++g) {
    const __m512i w = _mm512_loadu_si512(weight + g * 64);
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p) {
      const __m512i x = four_taps<all>(call.taps + g * 4, (first + p) * call.step + c, used, order);
      acc[p].raw = _mm512_dpbusd_epi32(acc[p].raw, x, w);
    }
  }
  if (call.sums) {
    for (int p = 0; p < pixels; ++p)
      _mm512_mask_storeu_epi32(call.sums + (first + p) * call.out_step + c, used, acc[p].raw);
    return;
  }
  const RescaleVector rescale(call.multiplier + c, call.shift + c, call.round + c);
  const IntVector zero_point = hn::Set(d, call.zero_point);
  const IntVector lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
#pragma GCC unroll 2
  for (int p = 0; p < pixels; ++p) {
    const IntVector x = hn::Min(hn::Max(hn::Add(rescale(acc[p]), zero_point), lowest), highest);
    std::int8_t* to = call.out + (first + p) * call.out_step + c;
    const __m128i bytes = _mm512_cvtepi32_epi8(x.raw);
    if (all)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    else
      _mm_mask_storeu_epi8(to, used, bytes);
  }
}
template <int fixed, int pixels>
HWY_INLINE void pixels_i8(const DepthwiseI8Call& call, std::int64_t first, __m512i order) {
  std::int64_t c = 0;
  for (; c + 16 <= call.channels; c += 16) chunk_i8<fixed, pixels, true>(call, first, c, order);
  if (c < call.channels) chunk_i8<fixed, pixels, false>(call, first, c, order);
}
template <int fixed>
void row_i8(const DepthwiseI8Call& call) {
  const __m512i order = interleaving();
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) pixels_i8<fixed, 2>(call, p, order);
  if (p < call.pixels) pixels_i8<fixed, 1>(call, p, order);
}
void depthwise_i8(const DepthwiseI8Call& call) { (call.tap_count + 3) / 4 == 3 ? row_i8<3>(call) : row_i8<0>(call); }
#elif HWY_TARGET != HWY_SCALAR
constexpr int group = 2, weight_bytes = 2, offset = 0;

// Two taps of each channel next to each other, as i16.
HWY_INLINE IntVector two_taps(const std::int8_t* first, const std::int8_t* second) {
  const hn::Repartition<std::int16_t, Ints> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> both;
  const hn::Rebind<std::int8_t, Ints> one;
  const auto x = hn::LoadU(one, first), y = hn::LoadU(one, second);
  const auto bytes = [&] {
    if constexpr (hn::MaxLanes(one) == 16)  // wider, it would interleave halves apart
      return hn::Combine(both, hn::InterleaveUpper(one, x, y), hn::InterleaveLower(one, x, y));
    else
      return hn::InterleaveLower(both, hn::ZeroExtendVector(both, x), hn::ZeroExtendVector(both, y));
  }();
  return hn::BitCast(Ints(), hn::PromoteTo(d16, bytes));
}

template <int fixed, int pixels, bool all>
HWY_INLINE void chunk_i8(const DepthwiseI8Call& call, std::int64_t first, std::int64_t c) {
  const Ints d;
  const hn::Repartition<std::int16_t, Ints> d16;
  const hn::Rebind<std::int8_t, Ints> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto used = static_cast<std::size_t>(std::min(lanes, call.channels - c));
  const std::int64_t groups = fixed ? fixed : (call.tap_count + 1) / 2;
  const auto* weight = static_cast<const std::int16_t*>(call.weight) + c * groups * 2;
  IntVector acc[pixels];
  for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, call.term + c);
#pragma GCC unroll 5
  for (std::int64_t g = 0; g < groups; ++g) {
    const IntVector w = hn::BitCast(d, hn::LoadU(d16, weight + g * lanes * 2));
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p) {
      const std::int8_t* x[2];
      HWY_ALIGN std::int8_t some[2][most_lanes];
      for (int t = 0; t < 2; ++t) {
        x[t] = call.taps[2 * g + t] + (first + p) * call.step + c;
        if constexpr (!all) {
          std::memset(some[t], 0, sizeof some[t]);
          std::memcpy(some[t], x[t], used);
          x[t] = some[t];
        }
      }
      acc[p] = simd::HWY_NAMESPACE::add_pair_products(d, acc[p], two_taps(x[0], x[1]), w);
    }
  }
  if (call.sums) {
    HWY_ALIGN std::int32_t some[most_lanes];
    for (int p = 0; p < pixels; ++p) {
      hn::Store(acc[p], d, some);
      std::memcpy(call.sums + (first + p) * call.out_step + c, some, used * 4);
    }
    return;
  }
  const IntVector zero_point = hn::Set(d, call.zero_point);
  const IntVector lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
  const RescaleVector rescale(call.multiplier + c, call.shift + c, call.round + c);
#pragma GCC unroll 2
  for (int p = 0; p < pixels; ++p) {
    const IntVector x = hn::Min(hn::Max(hn::Add(rescale(acc[p]), zero_point), lowest), highest);
    std::int8_t* to = call.out + (first + p) * call.out_step + c;
    if constexpr (all) {
      hn::StoreU(hn::DemoteTo(d8, x), d8, to);
    } else {
      HWY_ALIGN std::int8_t some[most_lanes];
      hn::StoreU(hn::DemoteTo(d8, x), d8, some);
      std::memcpy(to, some, used);
    }
  }
}
template <int fixed, int pixels>
HWY_INLINE void pixels_i8(const DepthwiseI8Call& call, std::int64_t first) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  std::int64_t c = 0;
  for (; c + lanes <= call.channels; c += lanes) chunk_i8<fixed, pixels, true>(call, first, c);
  if (c < call.channels) chunk_i8<fixed, pixels, false>(call, first, c);
}
template <int fixed>
void row_i8(const DepthwiseI8Call& call) {
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) pixels_i8<fixed, 2>(call, p);
  if (p < call.pixels) pixels_i8<fixed, 1>(call, p);
}
void depthwise_i8(const DepthwiseI8Call& call) { call.tap_count == 9 ? row_i8<5>(call) : row_i8<0>(call); }
#else
constexpr int group = 1, weight_bytes = 4, offset = 0;

void depthwise_i8(const DepthwiseI8Call& call) {
  const Ints d;
  const hn::Rebind<std::int8_t, Ints> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const IntVector zero_point = hn::Set(d, call.zero_point);
  const IntVector lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
  for (std::int64_t p = 0; p < call.pixels; ++p)
    for (std::int64_t c = 0; c < call.channels; c += lanes) {
      const std::int64_t used = std::min(lanes, call.channels - c);
      const auto* weight = static_cast<const std::int32_t*>(call.weight) + c * call.tap_count;
      IntVector acc = hn::LoadU(d, call.term + c);
      for (std::int64_t t = 0; t < call.tap_count; ++t) {
        const std::int8_t* x = call.taps[t] + p * call.step + c;
        HWY_ALIGN std::int8_t some[most_lanes] = {};
        if (used < lanes) {
          std::memcpy(some, x, static_cast<std::size_t>(used));
          x = some;
        }
        acc = hn::Add(acc, hn::Mul(hn::PromoteTo(d, hn::LoadU(d8, x)), hn::LoadU(d, weight + t * lanes)));
      }
      if (call.sums) {
        HWY_ALIGN std::int32_t some[most_lanes];
        hn::Store(acc, d, some);
        std::memcpy(call.sums + p * call.out_step + c, some, static_cast<std::size_t>(used) * 4);
        continue;
      }
      const RescaleVector rescale(call.multiplier + c, call.shift + c, call.round + c);
      const IntVector x = hn::Min(hn::Max(hn::Add(rescale(acc), zero_point), lowest), highest);
      HWY_ALIGN std::int8_t some[most_lanes];
      hn::StoreU(hn::DemoteTo(d8, x), d8, some);
      std::memcpy(call.out + p * call.out_step + c, some, static_cast<std::size_t>(used));
    }
}
#endif

// ---- i16
void depthwise_i16(const DepthwiseI16Call& call) {
  const Ints d;
  const hn::Rebind<std::int16_t, Ints> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t p = 0; p < call.pixels; ++p)
    for (std::int64_t c = 0; c < call.channels; c += lanes) {
      const std::int64_t used = std::min(lanes, call.channels - c);
      const std::int32_t* weight = call.weight + c * call.tap_count;
      IntVector acc = hn::Zero(d);
      for (std::int64_t t = 0; t < call.tap_count; ++t) {
        const std::int16_t* x = call.taps[t] + p * call.step + c;
        HWY_ALIGN std::int16_t some[most_lanes] = {};
        if (used < lanes) {
          std::memcpy(some, x, static_cast<std::size_t>(used) * 2);
          x = some;
        }
        acc = hn::Add(acc, hn::Mul(hn::PromoteTo(d, hn::LoadU(d16, x)), hn::LoadU(d, weight + t * lanes)));
      }
      HWY_ALIGN std::int32_t sums[most_lanes];
      hn::Store(acc, d, sums);
      std::int64_t* out = call.out + p * call.out_step + c;
      for (std::int64_t i = 0; i < used; ++i) out[i] = call.bias[c + i] + sums[i];
    }
}

}  // namespace

const DepthwiseKernels& depthwise_kernels_here() {
  static const DepthwiseKernels here{
      static_cast<int>(hn::Lanes(Ints())), group, weight_bytes, offset, &depthwise_f32, &depthwise_i8, &depthwise_i16};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(depthwise_kernels_here);
const DepthwiseKernels& depthwise_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_kernels_here)(); }

Lines<std::byte> pack_depthwise(const DepthwisePacking& packing, const std::int8_t* weight, std::int64_t taps,
                                std::int64_t channels, std::int64_t tap_stride, std::int64_t channel_stride,
                                std::int32_t weight_zp) {
  const auto [lanes, group, bytes] = packing;
  const std::int64_t chunks = (channels + lanes - 1) / lanes, groups = (taps + group - 1) / group;
  Lines<std::byte> packed(static_cast<std::size_t>(chunks * groups * lanes * group * bytes));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t t = 0; t < taps; ++t) {
      const std::int32_t w = weight[t * tap_stride + c * channel_stride] - weight_zp;
      const std::int64_t at = ((c / lanes * groups + t / group) * lanes + c % lanes) * group + t % group;
      if (bytes == 1) {
        if (w < -128 || w > 127) return {};
        packed[static_cast<std::size_t>(at)] = static_cast<std::byte>(w);
      } else if (bytes == 2) {
        const auto narrow = static_cast<std::int16_t>(w);
        std::memcpy(packed.data() + at * 2, &narrow, 2);
      } else {
        std::memcpy(packed.data() + at * 4, &w, 4);
      }
    }
  return packed;
}

}  // namespace tosaic::cpu
#endif
