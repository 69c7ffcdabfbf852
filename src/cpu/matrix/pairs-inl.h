// SPDX-License-Identifier: Apache-2.0
// Products of pairs of i16 and their sum, for inclusion in files compiled per instruction set: one instruction with
// AVX-512 VNNI, which Highway 1.0 does not use for them.
#if defined(TOSAIC_CPU_PAIRS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_PAIRS_INL_H
#undef TOSAIC_CPU_PAIRS_INL_H
#else
#define TOSAIC_CPU_PAIRS_INL_H
#endif
#include <hwy/highway.h>

#include "cpu/matrix/vnni-inl.h"
#include "simd/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// Each lane of a and b has two i16. Sums wrap.
template <class V>
HWY_INLINE V add_pairs(V sums, V a, V b) {
#if HWY_TARGET == HWY_AVX3_DL
  return V{_mm512_dpwssd_epi32(sums.raw, a.raw, b.raw)};
#else
  return simd::HWY_NAMESPACE::add_pair_products(hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>(), sums, a, b);
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
