// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/window/depthwise_kernel.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/depthwise_i16_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Ints = hn::ScalableTag<std::int32_t>;
constexpr std::int64_t most_lanes = HWY_MAX_BYTES / 4;

void depthwise_i16(const DepthwiseI16Call& call) {
  const Ints d;
  const hn::Rebind<std::int16_t, Ints> d16;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t p = 0; p < call.pixels; ++p)
    for (std::int64_t c = 0; c < call.channels; c += lanes) {
      const std::int64_t used = std::min(lanes, call.channels - c);
      const std::int32_t* weight = call.weight + c * call.tap_count;
      hn::Vec<Ints> acc = hn::Zero(d);
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

const DepthwiseI16Kernels& depthwise_i16_kernels_here() {
  static const DepthwiseI16Kernels here{static_cast<int>(hn::Lanes(Ints())), &depthwise_i16};
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
