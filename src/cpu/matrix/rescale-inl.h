// SPDX-License-Identifier: Apache-2.0
// RESCALE's multiply-round-shift on a vector of i32, and what makes i16 of two and bytes of four, for inclusion in
// files compiled per instruction set.
#if defined(TOSAIC_CPU_RESCALE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_RESCALE_INL_H
#undef TOSAIC_CPU_RESCALE_INL_H
#else
#define TOSAIC_CPU_RESCALE_INL_H
#endif
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cpu/matrix/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

using Ints = hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>;
using IntVector = hwy::HWY_NAMESPACE::Vec<Ints>;

#if HWY_TARGET != HWY_SCALAR
// The upper halves of lanes of 64 bits, as their lower ones.
template <class V>
HWY_INLINE IntVector upper_halves(V v) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(Ints(), hn::ShiftRight<32>(hn::BitCast(hn::ScalableTag<std::uint64_t>(), v)));
}
#endif

// The upper halves of the products of 64 bits. `odd`: the odd lanes of b in the even ones' places.
HWY_INLINE IntVector high_products(IntVector a, IntVector b, [[maybe_unused]] IntVector odd) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  const std::int64_t product = std::int64_t{hn::GetLane(a)} * hn::GetLane(b);
  return hn::Set(Ints(), static_cast<std::int32_t>(product >> 32));
#elif HWY_TARGET <= HWY_AVX3
  const __m512i evens = _mm512_mul_epi32(a.raw, b.raw), odds = _mm512_mul_epi32(_mm512_srli_epi64(a.raw, 32), odd.raw);
  return IntVector{_mm512_mask_shuffle_epi32(odds, 0x5555, evens, static_cast<_MM_PERM_ENUM>(0xf5))};
#else
  const IntVector odds = hn::BitCast(Ints(), hn::MulEven(upper_halves(a), odd));
  return hn::OddEven(odds, upper_halves(hn::MulEven(a, b)));
#endif
}
HWY_INLINE IntVector odd_lanes(IntVector v) {
#if HWY_TARGET == HWY_SCALAR
  return v;
#else
  return upper_halves(v);
#endif
}

// The constants of one vector of RescaleColumns, in registers.
struct RescaleVector {
  IntVector multiplier, odd, shift, round;
  HWY_INLINE RescaleVector(const std::int32_t* m, const std::int32_t* s, const std::int32_t* r) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Ints d;
    multiplier = hn::LoadU(d, m);
    odd = odd_lanes(multiplier);
    shift = hn::LoadU(d, s);
    round = hn::LoadU(d, r);
  }
  HWY_INLINE IntVector operator()(IntVector value) const {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::Shr(hn::Add(high_products(value, multiplier, odd), round), shift);
  }
};

#if HWY_TARGET <= HWY_AVX2
// Two vectors as one of 16 bits an element, and two of those as one of bytes, saturated. Packing keeps to parts of 128
// bits: their words of 64 or 32 bits are put in order last.
#if HWY_TARGET <= HWY_AVX3
using Packed = __m512i;
HWY_INLINE Packed two_packed(IntVector a, IntVector b) { return _mm512_packs_epi32(a.raw, b.raw); }
HWY_INLINE Packed two_in_order(Packed two) {
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), two);
}
HWY_INLINE Packed four_packed(Packed low, Packed high) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
}
#else
using Packed = __m256i;
HWY_INLINE Packed two_packed(IntVector a, IntVector b) { return _mm256_packs_epi32(a.raw, b.raw); }
HWY_INLINE Packed two_in_order(Packed two) { return _mm256_permute4x64_epi64(two, 0xd8); }
HWY_INLINE Packed four_packed(Packed low, Packed high) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}
#endif
#endif

// The first `count` elements, or all that there are: nothing past them is written. Rare, and as long as the loops that
// it would be a part of.
template <class D>
HWY_NOINLINE void store_first(hwy::HWY_NAMESPACE::Vec<D> v, D d, std::int64_t count,
                              hwy::HWY_NAMESPACE::TFromD<D>* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  HWY_ALIGN hn::TFromD<D> all[HWY_MAX_BYTES / sizeof(*to)];
  hn::StoreU(v, d, all);
  const auto elements = std::min(count, static_cast<std::int64_t>(hn::Lanes(d)));
  std::memcpy(to, all, static_cast<std::size_t>(elements) * sizeof(*to));
}

// What makes i16 of scaled sums, whose zero point is 0: saturated, and no less or more than two bounds.
class ShortValues {
 public:
  HWY_INLINE ShortValues(std::int32_t lowest, std::int32_t highest)
      : lowest_(static_cast<std::int16_t>(lowest)), highest_(static_cast<std::int16_t>(highest)) {}

  // One vector, or the first `count` of its elements.
  HWY_INLINE void store(IntVector x, std::int16_t* to) const { hwy::HWY_NAMESPACE::StoreU(of_one(x), OfOne(), to); }
  HWY_INLINE void store(IntVector x, std::int64_t count, std::int16_t* to) const {
    store_first(of_one(x), OfOne(), count, to);
  }
  // Two that have the lower and the upper halves of each 128 bits of i16.
  HWY_INLINE void store_halves(IntVector x, IntVector y, std::int16_t* to) const {
#if HWY_TARGET <= HWY_AVX2
    const hwy::HWY_NAMESPACE::ScalableTag<std::int16_t> d;
    hwy::HWY_NAMESPACE::StoreU(between(hwy::HWY_NAMESPACE::Vec<decltype(d)>{two_packed(x, y)}, d), d, to);
#else
    store_two(x, y, to);  // vectors of 128 bits
#endif
  }
  // Two neighbouring ones.
  HWY_INLINE void store_two(IntVector x, IntVector y, std::int16_t* to) const {
    namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET <= HWY_AVX2
    const hn::ScalableTag<std::int16_t> d;
    hn::StoreU(between(hn::Vec<decltype(d)>{two_in_order(two_packed(x, y))}, d), d, to);
#else
    store(x, to);
    store(y, to + hn::Lanes(Ints()));
#endif
  }

 private:
  using OfOne = hwy::HWY_NAMESPACE::Rebind<std::int16_t, Ints>;
  template <class V, class D>
  HWY_INLINE V between(V x, D d) const {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::Min(hn::Max(x, hn::Set(d, lowest_)), hn::Set(d, highest_));
  }
  HWY_INLINE hwy::HWY_NAMESPACE::Vec<OfOne> of_one(IntVector x) const {
    return between(hwy::HWY_NAMESPACE::DemoteTo(OfOne(), x), OfOne());
  }
  std::int16_t lowest_, highest_;
};

// What makes quantised values of scaled sums: plus the zero point, and no less or more than two bounds of 8 bits. On
// x86, four vectors at a time: sums of 16 bits that saturate come to the same, as all bytes are between the bounds.
class QuantisedValues {
 public:
  HWY_INLINE QuantisedValues(std::int32_t zero_point, std::int32_t lowest, std::int32_t highest)
      : zero_point_(zero_point), lowest_(lowest), highest_(highest) {}

  // One vector, or the first `count` of its elements.
  HWY_INLINE void store(IntVector x, std::int8_t* to) const { hwy::HWY_NAMESPACE::StoreU(of_one(x), Bytes(), to); }
  HWY_INLINE void store(IntVector x, std::int64_t count, std::int8_t* to) const {
    store_first(of_one(x), Bytes(), count, to);
  }
  // Four, each to its own place: from `to` on in steps of `stride`.
  HWY_INLINE void store_four(const IntVector (&x)[4], std::int8_t* to, std::int64_t stride) const {
#if HWY_TARGET <= HWY_AVX3
    const __m512i bytes = of_four(x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_castsi512_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + stride), _mm512_extracti32x4_epi32(bytes, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * stride), _mm512_extracti32x4_epi32(bytes, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * stride), _mm512_extracti32x4_epi32(bytes, 3));
#elif HWY_TARGET == HWY_AVX2
    const __m256i bytes = of_four(x);
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), low);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + stride), _mm_unpackhi_epi64(low, low));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * stride), high);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 3 * stride), _mm_unpackhi_epi64(high, high));
#else
    for (int v = 0; v < 4; ++v) store(x[v], to + v * stride);
#endif
  }
  // Two pairs, each next to each other: the second from `stride` on.
  HWY_INLINE void store_pairs(const IntVector (&x)[4], std::int8_t* to, std::int64_t stride) const {
#if HWY_TARGET <= HWY_AVX3
    const __m512i bytes = of_four(x);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(bytes));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + stride), _mm512_extracti64x4_epi64(bytes, 1));
#elif HWY_TARGET == HWY_AVX2
    const __m256i bytes = of_four(x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(bytes));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + stride), _mm256_extracti128_si256(bytes, 1));
#else
    const auto lanes = static_cast<std::int64_t>(hwy::HWY_NAMESPACE::Lanes(Ints()));
    for (int v = 0; v < 4; ++v) store(x[v], to + v / 2 * stride + v % 2 * lanes);
#endif
  }

 private:
  using Bytes = hwy::HWY_NAMESPACE::Rebind<std::int8_t, Ints>;
  HWY_INLINE hwy::HWY_NAMESPACE::Vec<Bytes> of_one(IntVector x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const Ints d;
    x = hn::Add(x, hn::Set(d, zero_point_));
    x = hn::Min(hn::Max(x, hn::Set(d, lowest_)), hn::Set(d, highest_));
    return hn::DemoteTo(Bytes(), x);
  }
#if HWY_TARGET <= HWY_AVX2
  HWY_INLINE Packed of_four(const IntVector (&x)[4]) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::ScalableTag<std::int8_t> d8;
    const hn::ScalableTag<std::int16_t> d16;
    const auto zero_point = hn::Set(d16, static_cast<std::int16_t>(zero_point_));
    const auto halves = [&](int first) HWY_ATTR {
      return hn::SaturatedAdd(hn::Vec<decltype(d16)>{two_packed(x[first], x[first + 1])}, zero_point).raw;
    };
    const hn::Vec<decltype(d8)> bytes{four_packed(halves(0), halves(2))};
    return hn::Min(hn::Max(bytes, hn::Set(d8, static_cast<std::int8_t>(lowest_))),
                   hn::Set(d8, static_cast<std::int8_t>(highest_)))
        .raw;
  }
#endif
  std::int32_t zero_point_, lowest_, highest_;
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
