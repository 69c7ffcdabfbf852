// SPDX-License-Identifier: Apache-2.0
#include "ethosu/finish_kernel.h"

#include <algorithm>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ethosu/finish_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::ethosu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// Channels from the first on, as many as whole vectors hold.
std::int64_t finish_vectors([[maybe_unused]] const FinishCall& call, [[maybe_unused]] const std::int32_t* sums,
                            [[maybe_unused]] std::int32_t* out) {
  std::int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::ScalableTag<std::int64_t> d;
  const hn::Rebind<std::int32_t, decltype(d)> narrow;
  const hn::Repartition<std::int32_t, decltype(d)> words;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const hn::Rebind<std::uint32_t, decltype(bits)> low_bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d), zero_point = hn::Set(d, call.zero_point), low = hn::Set(d, call.low),
             high = hn::Set(d, call.high);
  const NarrowScales& s = call.scales;
  for (; c + lanes <= call.channels; c += lanes) {
    const std::int64_t channel = call.first_channel + c;
    const auto of = [&](const std::vector<std::int64_t>& list) { return hn::LoadU(d, list.data() + channel); };
    const auto v = hn::PromoteTo(d, hn::Add(hn::LoadU(narrow, sums + c), hn::LoadU(narrow, s.bias.data() + channel)));
    const auto product = hn::MulEven(hn::BitCast(words, v), hn::BitCast(words, of(s.multiplier)));
    const auto rounded = hn::Add(product, hn::IfThenElse(hn::Lt(v, zero), of(s.below), of(s.above)));
    const auto scaled = hn::Add(hn::Shr(rounded, of(s.shift)), zero_point);
    const auto clipped = hn::Min(hn::Max(scaled, low), high);
    hn::StoreU(hn::BitCast(narrow, hn::TruncateTo(low_bits, hn::BitCast(bits, clipped))), narrow, out + c);
  }
#endif
  return c;
}

void finish(const FinishCall& call) {
  const NarrowScales& s = call.scales;
  const std::int32_t* sums = call.sums;
  std::int32_t* out = call.out;
  for (std::int64_t x = 0; x < call.pixels; ++x, sums += call.stride, out += call.channels)
    for (std::int64_t c = finish_vectors(call, sums, out); c < call.channels; ++c) {
      const auto channel = static_cast<std::size_t>(call.first_channel + c);
      const std::int64_t v = static_cast<std::int32_t>(static_cast<std::int64_t>(sums[c]) + s.bias[channel]);
      const std::int64_t rounded = v * s.multiplier[channel] + (v < 0 ? s.below[channel] : s.above[channel]);
      out[c] =
          static_cast<std::int32_t>(std::clamp((rounded >> s.shift[channel]) + call.zero_point, call.low, call.high));
    }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::ethosu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::ethosu {
HWY_EXPORT(finish);
void finish_pixels(const FinishCall& call) { HWY_DYNAMIC_DISPATCH(finish)(call); }

void NarrowScales::add(std::int64_t channel_bias, const Scale& scale, Rounding rounding) {
  bias.push_back(static_cast<std::int32_t>(channel_bias));  // sums with it fit, so it counts modulo 2^32
  multiplier.push_back(scale.multiplier);
  shift.push_back(scale.shift);
  above.push_back(static_cast<std::int64_t>(rounding_term(rounding, false, scale.shift, 0)));
  below.push_back(static_cast<std::int64_t>(rounding_term(rounding, true, scale.shift, 0)));
}
}  // namespace tosaic::ethosu
#endif
