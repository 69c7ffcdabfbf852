// SPDX-License-Identifier: Apache-2.0
// Products of pairs of i16, added in the i32 lane where the pair lies, for inclusion in files compiled per instruction
// set. Highway's ReorderWidenMulAccumulate leaves open which products meet in a lane: on x86 neighbours do, on NEON
// those half a vector apart, in two vectors.
#if defined(TOSAIC_SIMD_PAIR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_SIMD_PAIR_PRODUCTS_INL_H
#undef TOSAIC_SIMD_PAIR_PRODUCTS_INL_H
#else
#define TOSAIC_SIMD_PAIR_PRODUCTS_INL_H
#endif
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::simd {
namespace HWY_NAMESPACE {

// `d` is of i32; `a` and `b` hold two i16 per lane.
template <class D, class V>
HWY_INLINE V add_pair_products(D d, V sum, V a, V b) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  const hn::Repartition<std::int16_t, D> d16;
  V unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, a), hn::BitCast(d16, b), sum, unused);
#elif HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64
  (void)d;
  static_assert(sizeof(V) == 16, "whole vectors");
  const int16x8_t x = vreinterpretq_s16_s32(a.raw), y = vreinterpretq_s16_s32(b.raw);
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
  return hn::Add(sum, V(vpaddq_s32(low, high)));
#else
  (void)d;
  const auto first = [](V v) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const auto second = [](V v) { return hn::ShiftRight<16>(v); };
  return hn::Add(sum, hn::Add(hn::Mul(first(a), first(b)), hn::Mul(second(a), second(b))));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::simd
HWY_AFTER_NAMESPACE();
#endif
