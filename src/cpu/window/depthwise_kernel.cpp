// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/depthwise_kernel.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<std::int32_t>;
using IntVector = hn::Vec<Ints>;
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
  static const DepthwiseKernels here{static_cast<int>(hn::Lanes(Ints())), &depthwise_f32, &depthwise_i16};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(depthwise_kernels_here);
const DepthwiseKernels& depthwise_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_kernels_here)(); }

Lines<std::byte> pack_depthwise(const DepthwisePacking& packing, std::span<const std::int64_t> taps,
                                const std::int8_t* weight, std::int64_t channels, std::int64_t tap_stride,
                                std::int64_t channel_stride, std::int32_t weight_zp) {
  const auto [lanes, group, bytes] = packing;
  const std::int64_t chunks = (channels + lanes - 1) / lanes, groups = (std::ssize(taps) + group - 1) / group;
  Lines<std::byte> packed(static_cast<std::size_t>(chunks * groups * lanes * group * bytes));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t t = 0; t < std::ssize(taps); ++t) {
      const std::int64_t tap = taps[static_cast<std::size_t>(t)];
      if (tap == no_tap) continue;
      const std::int32_t w = weight[tap * tap_stride + c * channel_stride] - weight_zp;
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

std::vector<std::int64_t> taps_in_order(std::int64_t count) {
  std::vector<std::int64_t> taps(static_cast<std::size_t>(count));
  std::iota(taps.begin(), taps.end(), 0);
  return taps;
}

std::vector<std::int64_t> taps_by_columns(std::int64_t side, std::int64_t group) {
  std::vector<std::int64_t> taps;
  const std::int64_t lines = (side + group - 1) / group * group;
  for (std::int64_t x = 0; x < side; ++x)
    for (std::int64_t y = 0; y < lines; ++y) taps.push_back(y < side ? y * side + x : no_tap);
  return taps;
}

}  // namespace tosaic::cpu
#endif
