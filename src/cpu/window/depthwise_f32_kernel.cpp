// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/window/depthwise_kernel.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_f32_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/window/depthwise_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr std::int64_t most_lanes = HWY_MAX_BYTES / 4;

// ---- Any window, by its taps. Two pixels at a time share the weights; `fixed` taps are unrolled, 0: any number. The
// last vector of channels may overlap the one before it. There are as many as D has lanes, or less where it has few.
template <class D, int fixed, int pixels>
HWY_INLINE void pixels_f32(const DepthwiseF32Call& call, std::int64_t first) {
  const D d;
  using V = hn::Vec<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t taps = fixed ? fixed : call.tap_count, channels = call.of.channels;
  const float* tap[fixed ? fixed : 1];
  for (int t = 0; t < fixed; ++t) tap[t] = call.taps[t] + first * call.step;
  auto tap_at = [&](std::int64_t t) { return fixed ? tap[t] : call.taps[t] + first * call.step; };
  const V lowest = hn::Set(d, call.of.lowest), highest = hn::Set(d, call.of.highest);
  float* out = call.of.out + first * call.of.out_step;
  for (std::int64_t next = 0; next < channels && channels >= lanes; next += lanes) {
    const std::int64_t c = std::min(next, channels - lanes);
    V acc[pixels];
    for (int p = 0; p < pixels; ++p) acc[p] = hn::LoadU(d, call.of.bias + c);
#pragma GCC unroll 9
    for (std::int64_t t = 0; t < taps; ++t) {
      const V w = hn::LoadU(d, call.of.weight + t * call.of.weight_stride + c);
      const float* x = tap_at(t) + c;
#pragma GCC unroll 2
      for (int p = 0; p < pixels; ++p) acc[p] = hn::MulAdd(hn::LoadU(d, x + p * call.step), w, acc[p]);
    }
#pragma GCC unroll 2
    for (int p = 0; p < pixels; ++p)
      hn::StoreU(hn::Min(highest, hn::Max(lowest, acc[p])), d, out + p * call.of.out_step + c);
  }
  if (channels >= lanes) return;
  const auto rest = static_cast<std::size_t>(channels) * sizeof(float);
  for (int p = 0; p < pixels; ++p) {
    V acc = hn::LoadU(d, call.of.bias);
    for (std::int64_t t = 0; t < taps; ++t) {
      HWY_ALIGN float x[most_lanes] = {};
      std::memcpy(x, tap_at(t) + p * call.step, rest);
      acc = hn::MulAdd(hn::Load(d, x), hn::LoadU(d, call.of.weight + t * call.of.weight_stride), acc);
    }
    HWY_ALIGN float y[most_lanes];
    hn::Store(hn::Min(highest, hn::Max(lowest, acc)), d, y);
    std::memcpy(out + p * call.of.out_step, y, rest);
  }
}

template <class D, int fixed>
void pixels_of_row(const DepthwiseF32Call& call) {
  std::int64_t p = 0;
  for (; p + 2 <= call.pixels; p += 2) pixels_f32<D, fixed, 2>(call, p);
  if (p < call.pixels) pixels_f32<D, fixed, 1>(call, p);
}
// work(d): with as many lanes as the channels fill, or 4.
template <class Work>
void with_lanes_of(std::int64_t channels, const Work& work) {
  const auto fills = [&](auto d) { return static_cast<std::int64_t>(hn::Lanes(d)) <= channels; };
  if (fills(hn::ScalableTag<float>())) return work(hn::ScalableTag<float>());
  if (fills(hn::CappedTag<float, 8>())) return work(hn::CappedTag<float, 8>());
  work(hn::CappedTag<float, 4>());
}
template <int fixed>
void row_f32(const DepthwiseF32Call& call) {
  with_lanes_of(call.of.channels, [&](auto d) { pixels_of_row<decltype(d), fixed>(call); });
}
void pixels(const DepthwiseF32Call& call) {
  if (call.tap_count == 9) return row_f32<9>(call);
  if (call.tap_count == 25) return row_f32<25>(call);
  row_f32<0>(call);
}

// ---- Square windows, by columns: a group is an element.
template <class D, int side_>
struct ChunkOfChannels {
  static constexpr int chains = 1, pixels = 1, side = side_, groups = side_;
  using Vector = hn::Vec<D>;
  const float* const* lines;
  Vector term, outside;
  Vector weight[side][groups];
  HWY_INLINE ChunkOfChannels(const DepthwiseF32Columns& call, std::int64_t c)
      : lines(call.window.lines), term(hn::LoadU(D(), call.of.bias + c)), outside(hn::Zero(D())) {
#pragma GCC unroll 7
    for (int x = 0; x < side; ++x) {
#pragma GCC unroll 7
      for (int y = 0; y < side; ++y)
        weight[x][y] = hn::LoadU(D(), call.of.weight + (x * side + y) * call.of.weight_stride + c);
    }
  }
  HWY_INLINE void load(std::int64_t at, Vector (&column)[groups]) const {
#pragma GCC unroll 7
    for (int y = 0; y < side; ++y) column[y] = hn::LoadU(D(), lines[y] + at);
  }
  static HWY_INLINE Vector add_products(Vector sums, Vector x, Vector weights) { return hn::MulAdd(x, weights, sums); }
};

template <class D, int side, int stride>
HWY_NOINLINE void chunk_of_columns(const DepthwiseF32Columns& call, std::int64_t first, std::int64_t last,
                                   std::int64_t c) {
  const D d;
  const auto lowest = hn::Set(d, call.of.lowest), highest = hn::Set(d, call.of.highest);
  float* const out = call.of.out + c;
  by_columns<stride>(ChunkOfChannels<D, side>(call, c), call.window, call.of.channels, c, first, last,
                     [&](std::int64_t p, const hn::Vec<D>(&sums)[1], std::int64_t) HWY_ATTR {
                       hn::StoreU(hn::Min(highest, hn::Max(lowest, sums[0])), d,
                                  out + (p - call.window.first) * call.of.out_step);
                     });
}
template <int side, int stride>
void all_columns(const DepthwiseF32Columns& call) {
  using D = hn::ScalableTag<float>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(D()));
  for_strips(call.window, call.of.channels, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t c = 0; c < call.of.channels; c += lanes)
      chunk_of_columns<D, side, stride>(call, first, last, std::min(c, call.of.channels - lanes));
  });
}
#if HWY_TARGET == HWY_SCALAR
constexpr auto* by_columns_here = static_cast<void (*)(const DepthwiseF32Columns&)>(nullptr);
#else
void columns(const DepthwiseF32Columns& call) {
  for_window(call.window, [&](auto side, auto stride) { all_columns<side(), stride()>(call); });
}
constexpr auto* by_columns_here = &columns;
#endif

}  // namespace

const DepthwiseF32Kernels& depthwise_f32_kernels_here() {
  static const DepthwiseF32Kernels here{static_cast<int>(hn::Lanes(hn::ScalableTag<float>())), &pixels,
                                        by_columns_here};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(depthwise_f32_kernels_here);
const DepthwiseF32Kernels& depthwise_f32_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_f32_kernels_here)(); }
}  // namespace tosaic::cpu
#endif
