// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/short_bytes.h"

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/short_bytes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The compiler vectorises this one.
void split(const std::int16_t* HWY_RESTRICT from, std::int64_t count, std::int8_t* HWY_RESTRICT upper,
           std::int8_t* HWY_RESTRICT lower) {
  for (std::int64_t i = 0; i < count; ++i) {
    upper[i] = static_cast<std::int8_t>(from[i] >> 8);
    lower[i] = static_cast<std::int8_t>(from[i] ^ 0x80);
  }
}

void rescale(const ByteSums& of, const RescaleColumns& scales, std::int64_t first, std::int32_t lowest,
             std::int32_t highest, std::int16_t* to, std::int64_t stride) {
  const Ints d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const ShortValues shorts(lowest, highest);
  for (std::int64_t j = 0; j < of.columns; j += lanes) {
    const RescaleVector scaled(scales.multiplier.data() + first + j, scales.shift.data() + first + j,
                               scales.round.data() + first + j);
    for (std::int64_t r = 0; r < of.rows; ++r) {
      const std::int32_t* upper = of.sums + r * 2 * of.width + j;
      const IntVector sum = hn::Add(hn::ShiftLeft<8>(hn::LoadU(d, upper)), hn::LoadU(d, upper + of.width));
      std::int16_t* at = to + r * stride + j;
      of.columns - j >= lanes ? shorts.store(scaled(sum), at) : shorts.store(scaled(sum), of.columns - j, at);
    }
  }
}

}  // namespace

const ShortBytes& short_bytes_here() {
  static constexpr ShortBytes here{&split, &rescale};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(short_bytes_here);
const ShortBytes& short_bytes() { return HWY_DYNAMIC_DISPATCH(short_bytes_here)(); }
}  // namespace tosaic::cpu
#endif
