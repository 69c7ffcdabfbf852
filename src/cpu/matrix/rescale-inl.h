// SPDX-License-Identifier: Apache-2.0
// RESCALE's multiply-round-shift on a vector of i32, for inclusion in files compiled per instruction set.
#if defined(TOSAIC_CPU_RESCALE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_RESCALE_INL_H
#undef TOSAIC_CPU_RESCALE_INL_H
#else
#define TOSAIC_CPU_RESCALE_INL_H
#endif
#include <hwy/highway.h>

#include "cpu/matrix/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

using Ints = hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>;
using IntVector = hwy::HWY_NAMESPACE::Vec<Ints>;

#if HWY_TARGET == HWY_SCALAR
struct RescaleVector {
  std::int64_t multiplier, shift, round;
  RescaleVector(const std::int32_t* m, const std::int64_t* s, const std::int64_t* r)
      : multiplier(*m), shift(*s), round(*r) {}
  IntVector operator()(IntVector value) const {
    const std::int64_t product = hwy::HWY_NAMESPACE::GetLane(value) * multiplier + round;
    return hwy::HWY_NAMESPACE::Set(Ints(), static_cast<std::int32_t>(product >> shift));
  }
};
#else
// The constants of one vector of columns, in registers.
struct RescaleVector {
  using Longs = hwy::HWY_NAMESPACE::ScalableTag<std::int64_t>;
  using LongVector = hwy::HWY_NAMESPACE::Vec<Longs>;
  IntVector multiplier, multiplier_odd;
  LongVector shift_even, shift_odd, round_even, round_odd;

  HWY_INLINE RescaleVector(const std::int32_t* m, const std::int64_t* s, const std::int64_t* r) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Ints d;
    const Longs dl;
    const std::size_t half = hn::Lanes(dl);
    multiplier = hn::LoadU(d, m);
    multiplier_odd = odd(multiplier);
    shift_even = hn::LoadU(dl, s);
    shift_odd = hn::LoadU(dl, s + half);
    round_even = hn::LoadU(dl, r);
    round_odd = hn::LoadU(dl, r + half);
  }
  HWY_INLINE IntVector operator()(IntVector value) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Ints d;
    const Longs dl;
    const LongVector evens = hn::Add(hn::MulEven(value, multiplier), round_even);
    const LongVector odds = hn::Add(hn::MulEven(odd(value), multiplier_odd), round_odd);
    return join(shift_right(evens, shift_even), shift_right(odds, shift_odd));
  }
  // The odd lanes in the even ones' places. (Signed lanes of 64 bits are shifted in several steps on AVX2.)
  static HWY_INLINE IntVector odd(IntVector value) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::BitCast(Ints(), hn::ShiftRight<32>(hn::BitCast(hn::ScalableTag<std::uint64_t>(), value)));
  }
  // The low halves of the even and odd results, interleaved again.
  static HWY_INLINE IntVector join(LongVector even, LongVector odd) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Ints d;
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
  }
  // Arithmetic shift of 64-bit lanes by different amounts: AVX-512 has it; elsewhere a logical shift of the
  // number made non-negative does it ((x + 2^63) >> s minus 2^63 >> s).
  static HWY_INLINE LongVector shift_right(LongVector x, LongVector by) {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET <= HWY_AVX3
    return LongVector{_mm512_srav_epi64(x.raw, by.raw)};
#elif HWY_TARGET == HWY_AVX2
    const Longs dl;
    const LongVector bias = hn::Set(dl, INT64_MIN);
    const LongVector u{_mm256_srlv_epi64(hn::Xor(x, bias).raw, by.raw)};
    return hn::Sub(u, LongVector{_mm256_srlv_epi64(bias.raw, by.raw)});
#else
    const Longs dl;
    HWY_ALIGN std::int64_t a[HWY_MAX_BYTES / 8], b[HWY_MAX_BYTES / 8];
    hn::Store(x, dl, a);
    hn::Store(by, dl, b);
    for (std::size_t i = 0; i < hn::Lanes(dl); ++i) a[i] >>= b[i];
    return hn::Load(dl, a);
#endif
  }
};
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
