// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/quantised_kernel.h"

#include <algorithm>
#include <cstring>

#include "simd/dispatch.h"
#include "simd/prefetch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/quantised_kernel.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/matrix/vnni-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using Ints = hn::ScalableTag<std::int32_t>;
using FloatVector = hn::Vec<Floats>;
using IntVector = hn::Vec<Ints>;

#if HWY_TARGET <= HWY_AVX3
constexpr int max_rows = 8;
#else
constexpr int max_rows = 4;
#endif

std::int32_t word_at(const std::byte* from) {
  std::int32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Four products per lane: bytes of `b`, unsigned, with the four quantised values of a row at `a`.
#if HWY_TARGET == HWY_AVX3_DL
constexpr bool takes_bytes = true;
HWY_INLINE IntVector dot(IntVector acc, IntVector b, const std::byte* a) {
  return IntVector{_mm512_dpbusd_epi32(acc.raw, b.raw, _mm512_set1_epi32(word_at(a)))};
}
#else
// As 16 bits: the even two, then the odd two of each four.
constexpr bool takes_bytes = false;
HWY_INLINE IntVector dot(IntVector acc, IntVector b, const std::byte* a) {
  const std::int32_t even = word_at(a), odd = word_at(a + 4);
  const Ints d;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::int16_t> d16;
  const auto bytes = hn::Set(d, 0x00ff00ff);
  IntVector none = hn::Zero(d);  // x86 adds neighbours: all goes into the first sum
  acc = hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, hn::And(b, bytes)), hn::BitCast(d16, hn::Set(d, even)), acc,
                                      none);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, hn::And(hn::ShiftRight<8>(b), bytes)),
                                       hn::BitCast(d16, hn::Set(d, odd)), acc, none);
#else
  const auto byte = hn::Set(d, 0xff);
  const auto low = [](std::int32_t pair) { return std::int32_t{static_cast<std::int16_t>(pair)}; };
  acc = hn::Add(acc, hn::Mul(hn::And(b, byte), hn::Set(d, low(even))));
  acc = hn::Add(acc, hn::Mul(hn::And(hn::ShiftRight<8>(b), byte), hn::Set(d, low(odd))));
  acc = hn::Add(acc, hn::Mul(hn::And(hn::ShiftRight<16>(b), byte), hn::Set(d, even >> 16)));
  return hn::Add(acc, hn::Mul(hn::And(hn::ShiftRight<24>(b), byte), hn::Set(d, odd >> 16)));
#endif
}
#endif

// x86 before VNNI adds products of unsigned and signed bytes two by two in 16 bits. Two of 4 and 8 bits are at most
// 2 x 15 x 128: eight such sums fit as well.
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr bool adds_pairs = true;
using Shorts = hn::ScalableTag<std::int16_t>;
using ShortVector = hn::Vec<Shorts>;
HWY_INLINE ShortVector pair_sums(IntVector b, const std::byte* a) {
  const IntVector int8 = hn::Set(Ints(), word_at(a));
#if HWY_TARGET == HWY_SSE4
  return ShortVector{_mm_maddubs_epi16(b.raw, int8.raw)};
#elif HWY_TARGET == HWY_AVX2
  return ShortVector{_mm256_maddubs_epi16(b.raw, int8.raw)};
#else
  return ShortVector{_mm512_maddubs_epi16(b.raw, int8.raw)};
#endif
}
#else
constexpr bool adds_pairs = false;
#endif

// Of an activation's quantised value as the products read it.
template <int bits>
constexpr int value_bytes = takes_bytes || (adds_pairs && bits == 4) ? 1 : 2;

template <int bits>
void convert_for(const std::int8_t* from, std::int64_t count, void* to) {
  if constexpr (value_bytes<bits> == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count));
  } else {
    auto* out = static_cast<std::int16_t*>(to);
    for (std::int64_t i = 0; i < count; i += 4) {
      out[i] = from[i];
      out[i + 1] = from[i + 2];
      out[i + 2] = from[i + 1];
      out[i + 3] = from[i + 3];
    }
  }
}

// The quantised values of a word in the order of their bits: which of the word's products the i-th belongs to.
template <int bits>
constexpr int product_of(int i) {
  return bits == 8 ? i : i / 2 + i % 2 * 4;
}
template <int bits>
constexpr float offset = bits == 8 ? 128.0f : 8.0f;

// The lowest quantised value of each lane.
template <int bits>
HWY_INLINE FloatVector lowest_value(IntVector word) {
  const Floats d;
#if HWY_TARGET <= HWY_AVX3
  if constexpr (bits == 4) {  // the lowest four bits of each lane choose one of sixteen
    const __m512 values = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    return FloatVector{_mm512_permutexvar_ps(word.raw, values)};
  } else {  // the last bits of 2^23 + value, in one instruction
    const IntVector bits_of_sum{
        _mm512_ternarylogic_epi32(word.raw, _mm512_set1_epi32(0xff), _mm512_set1_epi32(0x4b000000), 0xea)};
    return hn::Sub(hn::BitCast(d, bits_of_sum), hn::Set(d, 0x1p23f + offset<bits>));
  }
#else
  return hn::Sub(hn::ConvertTo(d, hn::And(word, hn::Set(Ints(), (1 << bits) - 1))), hn::Set(d, offset<bits>));
#endif
}
// Takes it out of each lane.
template <int bits>
HWY_INLINE FloatVector next_value(IntVector& word) {
  const FloatVector value = lowest_value<bits>(word);
  word = hn::ShiftRight<bits>(word);
  return value;
}

// Few rows are done with a panel before memory has the next one ready, and processors that see a stream follow it to
// the end of a page only. So much further on in the panels is asked for; their scales are an eighth as long.
template <int rows>
constexpr bool asks_ahead = rows <= 2;
constexpr std::int64_t bytes_ahead = 4096, scale_bytes_ahead = bytes_ahead / 8;

// The scales of a panel's groups, in either form.
class ScaleReader {
 public:
  ScaleReader(const QuantisedPanels& b, std::int64_t panel)
      : lanes_(static_cast<std::int64_t>(hn::Lanes(Floats()))),
        long_(b.scales.empty() ? nullptr : b.scales.data() + b.scale_at(panel, 0)),
        short_(b.scales.empty() ? b.short_scales.data() + b.scale_at(panel, 0) : nullptr) {}
  HWY_INLINE FloatVector of(std::int64_t g) const {
    const Floats d;
    if (long_) return hn::LoadU(d, long_ + g * lanes_);
    const hn::Rebind<std::uint16_t, Floats> d16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(Ints(), hn::LoadU(d16, short_ + g * lanes_))));
  }
  HWY_INLINE void ask_ahead(std::int64_t g) const {
    if (long_) return simd::prefetch(long_ + g * lanes_ + scale_bytes_ahead / 4);
    simd::prefetch(short_ + g * lanes_ + scale_bytes_ahead / 2);
  }

 private:
  std::int64_t lanes_;
  const float* long_;
  const std::uint16_t* short_;
};

template <int rows>
HWY_INLINE void store(const QuantisedCall& call, const FloatVector (&sums)[rows]) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t first = call.panel * lanes, columns = std::min(lanes, call.b->n - first);
  const FloatVector lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
  HWY_ALIGN float edge[HWY_MAX_BYTES / sizeof(float)];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    // x86's max and min give the second operand when one is NaN: a NaN passes.
    const FloatVector x = hn::Min(highest, hn::Max(lowest, sums[r]));
    float* to = call.c + r * call.c_stride + first;
    if (columns == lanes) {
      hn::StoreU(x, d, to);
    } else {
      hn::Store(x, d, edge);
      std::memcpy(to, edge, static_cast<std::size_t>(columns) * sizeof(float));
    }
  }
}

template <int bits, int rows>
HWY_NOINLINE void floats_tile(const QuantisedCall& call) {
  const Floats d;
  const Ints di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int per_word = 32 / bits, chains = rows == 1 ? 4 : rows == 2 ? 2 : 1;
  const QuantisedPanels& b = *call.b;
  const auto* words = reinterpret_cast<const std::int32_t*>(b.words_of(call.panel));
  const ScaleReader scales(b, call.panel);
  const float* a[rows];
  FloatVector total[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    a[r] = reinterpret_cast<const float*>(static_cast<const std::byte*>(call.a) + r * call.a_stride);
    total[r] = hn::LoadU(d, call.bias + call.panel * lanes);
  }
  for (std::int64_t g = 0; g < b.groups(); ++g) {
    FloatVector sum[rows][chains];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) sum[r][c] = hn::Zero(d);
    for (std::int64_t w = b.group / per_word; w > 0; --w) {
      IntVector word = hn::LoadU(di, words);
      words += lanes;
#pragma GCC unroll 8
      for (int i = 0; i < per_word; ++i) {
        const FloatVector code = next_value<bits>(word);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          FloatVector& into = sum[r][i % chains];
          into = hn::MulAdd(hn::Set(d, a[r][product_of<bits>(i)]), code, into);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) a[r] += per_word;
    }
    const FloatVector scale = scales.of(g);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
      for (int c = 1; c < chains; ++c) sum[r][0] = hn::Add(sum[r][0], sum[r][c]);
      total[r] = hn::MulAdd(sum[r][0], scale, total[r]);
    }
  }
  store<rows>(call, total);
}

// Adds the products of one group: of `count` words, each with as many quantised values of the rows at `a`.
template <int bits, int rows>
struct Group {
  const std::int32_t* words;
  const std::byte* a;
  std::int64_t a_stride;
  std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  static constexpr std::int64_t step = std::int64_t{32 / bits} * value_bytes<bits>, half_step = step / 2;

  // Words are asked for so far ahead, as processors that see a stream follow it to the end of a page only.
  static constexpr std::int64_t words_in_line = 16, ahead = 512;

  // The quantised values in the low and in the high halves of a word's bytes.
  static HWY_INLINE IntVector low_halves(IntVector word) { return hn::And(word, hn::Set(Ints(), 0x0f0f0f0f)); }
  static HWY_INLINE IntVector high_halves(IntVector word) { return low_halves(hn::ShiftRight<4>(word)); }

  HWY_INLINE void add(std::int64_t count, IntVector (&sums)[rows]) {
    if constexpr (bits == 8)
      add_bytes(count, sums);
    else if constexpr (adds_pairs)
      add_pairs(count, sums);
    else
      add_halves(count, sums);
  }

 private:
  HWY_INLINE void ask_ahead() const {
    if constexpr (asks_ahead<rows>) simd::prefetch(words + bytes_ahead / 4);
  }

  HWY_INLINE void add_bytes(std::int64_t count, IntVector (&sums)[rows]) {
    for (; count > 0; --count, words += lanes, a += step) {
      ask_ahead();
      const IntVector word = hn::LoadU(Ints(), words);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) sums[r] = dot(sums[r], word, a + r * a_stride);
    }
  }

  HWY_INLINE void add_halves(std::int64_t count, IntVector (&sums)[rows]) {
    IntVector high[rows];  // a chain of additions of its own
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) high[r] = hn::Zero(Ints());
    for (; count > 0; --count, words += lanes, a += step) {
      ask_ahead();
      const IntVector word = hn::LoadU(Ints(), words), first = low_halves(word), second = high_halves(word);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        sums[r] = dot(sums[r], first, a + r * a_stride);
        high[r] = dot(high[r], second, a + r * a_stride + half_step);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) sums[r] = hn::Add(sums[r], high[r]);
  }

#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  HWY_INLINE void add_pairs(std::int64_t count, IntVector (&sums)[rows]) {
    for (; count >= 4; count -= 4) add_few<4>(sums);
    for (; count > 0; --count) add_few<1>(sums);
  }
  template <int count>
  HWY_INLINE void add_few(IntVector (&sums)[rows]) {
    const Shorts d16;
    ShortVector pairs[rows];
    for (std::int64_t line = 0; line < count * lanes; line += words_in_line) hwy::Prefetch(words + ahead + line);
#pragma GCC unroll 4
    for (int w = 0; w < count; ++w, words += lanes, a += step) {
      const IntVector word = hn::LoadU(Ints(), words), first = low_halves(word), second = high_halves(word);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const ShortVector low = pair_sums(first, a + r * a_stride);
        pairs[r] = hn::Add(w ? hn::Add(pairs[r], low) : low, pair_sums(second, a + r * a_stride + half_step));
      }
    }
    IntVector none = hn::Zero(Ints());
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
      sums[r] = hn::ReorderWidenMulAccumulate(Ints(), pairs[r], hn::Set(d16, 1), sums[r], none);
  }
#endif
};

template <int bits, int rows>
HWY_NOINLINE void int8_tile(const QuantisedCall& call) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const QuantisedPanels& b = *call.b;
  Group<bits, rows> group{reinterpret_cast<const std::int32_t*>(b.words_of(call.panel)),
                          static_cast<const std::byte*>(call.a), call.a_stride};
  const ScaleReader scales(b, call.panel);
  FloatVector total[rows];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) total[r] = hn::Zero(d);
  for (std::int64_t g = 0; g < b.groups(); ++g) {
    IntVector sums[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) sums[r] = hn::Set(Ints(), call.sums[r * b.groups() + g]);
    group.add(b.group / b.values_per_word(), sums);
    if constexpr (asks_ahead<rows>) scales.ask_ahead(g);
    const FloatVector scale = scales.of(g);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) total[r] = hn::MulAdd(hn::ConvertTo(d, sums[r]), scale, total[r]);
  }
  const FloatVector bias = hn::LoadU(d, call.bias + call.panel * lanes);
  const FloatVector of_zero = hn::LoadU(d, b.row_sums.data() + call.panel * lanes);
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    if (call.zero) total[r] = hn::Sub(total[r], hn::Mul(hn::Set(d, call.zero[r]), of_zero));
    total[r] = call.scale ? hn::MulAdd(total[r], hn::Set(d, call.scale[r]), bias) : hn::Add(total[r], bias);
  }
  store<rows>(call, total);
}

template <int bits, int rows>
void by_rows(const QuantisedCall& call, bool int8) {
  if constexpr (rows > max_rows) {
    return;
  } else {
    if (call.rows != rows) return by_rows<bits, rows + 1>(call, int8);
    int8 ? int8_tile<bits, rows>(call) : floats_tile<bits, rows>(call);
  }
}
void floats(const QuantisedCall& call) { call.b->bits == 4 ? by_rows<4, 1>(call, false) : by_rows<8, 1>(call, false); }
void int8(const QuantisedCall& call) { call.b->bits == 4 ? by_rows<4, 1>(call, true) : by_rows<8, 1>(call, true); }

int bytes_of_value(int bits) { return bits == 4 ? value_bytes<4> : value_bytes<8>; }
void convert(int bits, const std::int8_t* from, std::int64_t count, void* to) {
  bits == 4 ? convert_for<4>(from, count, to) : convert_for<8>(from, count, to);
}

template <int bits>
void widen_bits(const QuantisedPanels& b, std::int64_t panel, float* to, std::int64_t stride) {
  const Floats d;
  const Ints di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int per_word = 32 / bits;
  const auto* words = reinterpret_cast<const std::int32_t*>(b.words_of(panel));
  const ScaleReader scales(b, panel);
  for (std::int64_t g = 0; g < b.groups(); ++g) {
    const FloatVector scale = scales.of(g);
    for (std::int64_t w = 0; w < b.group / per_word; ++w) {
      IntVector word = hn::LoadU(di, words);
      words += lanes;
#pragma GCC unroll 8
      for (int i = 0; i < per_word; ++i)
        hn::StoreU(hn::Mul(next_value<bits>(word), scale), d, to + product_of<bits>(i) * stride);
      to += per_word * stride;
    }
  }
}
void widen(const QuantisedPanels& b, std::int64_t panel, float* to, std::int64_t stride) {
  b.bits == 4 ? widen_bits<4>(b, panel, to, stride) : widen_bits<8>(b, panel, to, stride);
}

}  // namespace

const QuantisedGemm& quantised_gemm_here() {
  static const QuantisedGemm here{
      static_cast<int>(hn::Lanes(Floats())), max_rows, &floats, &int8, &bytes_of_value, &convert, &widen};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(quantised_gemm_here);
const QuantisedGemm& quantised_gemm() { return HWY_DYNAMIC_DISPATCH(quantised_gemm_here)(); }

void group_sums(const QuantisedPanels& b, const std::int8_t* row, std::int32_t* sums) {
  const std::int32_t offset = b.bits == 8 ? 128 : 8;
  for (std::int64_t g = 0; g < b.groups(); ++g) {
    std::int32_t sum = 0;
    for (std::int64_t i = g * b.group; i < (g + 1) * b.group; ++i) sum += row[i];
    sums[g] = -offset * sum;
  }
}

}  // namespace tosaic::cpu
#endif
