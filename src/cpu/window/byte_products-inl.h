// SPDX-License-Identifier: Apache-2.0
// Products of i8 with weights, some at once added up in a lane of i32, for inclusion in files compiled per instruction
// set: four of bytes with AVX-512 VNNI, else pairs of i16, or one i32.
#if defined(TOSAIC_CPU_BYTE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_BYTE_PRODUCTS_INL_H
#undef TOSAIC_CPU_BYTE_PRODUCTS_INL_H
#else
#define TOSAIC_CPU_BYTE_PRODUCTS_INL_H
#endif
#include <hwy/highway.h>

#include "cpu/matrix/rescale-inl.h"
#include "simd/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// `offset` is added to inputs as they are loaded; `weight_bytes` are those of a weight as packed.
#if HWY_TARGET == HWY_AVX3_DL
struct ByteProducts {
  static constexpr int at_once = 4, weight_bytes = 1, offset = 128;
  static HWY_INLINE IntVector same(std::int8_t x) { return IntVector{_mm512_set1_epi8(static_cast<char>(x ^ -128))}; }
  // The first `count` elements from here on, in the first lanes.
  template <int count>
  static HWY_INLINE IntVector neighbours(const std::int8_t* from) {
    static_assert(count == 16);
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return IntVector{_mm512_zextsi128_si512(_mm_xor_si128(x, _mm_set1_epi8(-128)))};
  }
  static HWY_INLINE IntVector add_products(IntVector sums, IntVector x, IntVector weights) {
    return IntVector{_mm512_dpbusd_epi32(sums.raw, x.raw, weights.raw)};
  }
};
#elif HWY_TARGET == HWY_SCALAR
struct ByteProducts {
  static constexpr int at_once = 1, weight_bytes = 4, offset = 0;
  static HWY_INLINE IntVector same(std::int8_t x) { return hwy::HWY_NAMESPACE::Set(Ints(), x); }
  static HWY_INLINE IntVector add_products(IntVector sums, IntVector x, IntVector weights) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::Add(sums, hn::Mul(x, weights));
  }
};
#else
struct ByteProducts {
  static constexpr int at_once = 2, weight_bytes = 2, offset = 0;
  static HWY_INLINE IntVector same(std::int8_t x) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::BitCast(Ints(), hn::Set(hn::Repartition<std::int16_t, Ints>(), x));
  }
  template <int count>
  static HWY_INLINE IntVector neighbours(const std::int8_t* from) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::Repartition<std::int16_t, Ints> d16;
    constexpr int most = static_cast<int>(hn::MaxLanes(decltype(d16)()));
    static_assert(count == most || 2 * count == most);
    if constexpr (count == most) {
      return hn::BitCast(Ints(), hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::int8_t, decltype(d16)>(), from)));
    } else {
      const hn::Half<decltype(d16)> half;
      return hn::BitCast(
          Ints(),
          hn::ZeroExtendVector(d16, hn::PromoteTo(half, hn::LoadU(hn::Rebind<std::int8_t, decltype(half)>(), from))));
    }
  }
  static HWY_INLINE IntVector add_products(IntVector sums, IntVector x, IntVector weights) {
    return simd::HWY_NAMESPACE::add_pair_products(Ints(), sums, x, weights);
  }
};
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
