// SPDX-License-Identifier: Apache-2.0
// RESCALE on blocks. Three parts, each a pass over the block: widen (minus the input zero point) to i32, scale,
// narrow (plus the output zero point, clipped). The frequent pairs of dtypes do all three in registers.
#include <algorithm>
#include <bit>

#include "cpu/elementwise/block.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/block_rescale.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/elementwise/block_loops-inl.h"
#include "cpu/matrix/rescale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using C = BlockConstants;

struct Widen {
  template <class T>
  static HWY_INLINE std::int32_t f(T a, const C& c) {
    return static_cast<std::int32_t>(a) - c.input_zp;
  }
};
template <class Out>
struct Narrow {
  static HWY_INLINE Out f(std::int32_t a, const C& c) {
    const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(c.output_zp));
    const auto lowest = static_cast<std::int32_t>(c.lowest), highest = static_cast<std::int32_t>(c.highest);
    return static_cast<Out>(std::min(std::max(x, lowest), highest));
  }
};

// One element, as the standard writes it.
HWY_INLINE std::int32_t scale_one(std::int64_t value, std::int64_t multiplier, int shift, bool double_round) {
  std::int64_t round = std::int64_t{1} << (shift - 1);
  if (double_round && shift > 31) round += value >= 0 ? std::int64_t{1} << 30 : -(std::int64_t{1} << 30);
  return static_cast<std::int32_t>((value * multiplier + round) >> shift);
}

// The multiplier and shift of element i of the block.
struct Scales {
  const std::int32_t* multiplier;
  const std::int32_t* shift;
  explicit Scales(const Block& block) {
    const C& c = *block.constants;
    const std::int64_t at = c.channels == 1 ? 0 : block.first % c.channels;
    multiplier = c.multiplier.data() + at;
    shift = c.scale_shift.data() + at;
  }
};

// Narrow dtypes become i32 on the way in, and are saturated on the way out.
template <class In>
HWY_INLINE IntVector load(const void* from, std::int64_t i) {
  const Ints d;
  const In* element = static_cast<const In*>(from) + i;
  if constexpr (sizeof(In) == 4)
    return hn::LoadU(d, element);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<In, Ints>(), element));
}
template <class Out>
HWY_INLINE void store(IntVector x, Out* to) {
  const hn::Rebind<Out, Ints> d;
  if constexpr (sizeof(Out) == 4)
    hn::StoreU(x, d, to);
  else
    hn::StoreU(hn::DemoteTo(d, x), d, to);
}
// Four neighbouring vectors: a step of saturation for two or four of them.
template <class Out>
HWY_INLINE void store_four(IntVector x0, IntVector x1, IntVector x2, IntVector x3, Out* to) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (sizeof(Out) == 1) {
    const hn::ScalableTag<Out> d;
    return hn::StoreU(hn::Vec<decltype(d)>{four_packed(two_packed(x0, x1), two_packed(x2, x3))}, d, to);
  }
  if constexpr (sizeof(Out) == 2) {
    const hn::ScalableTag<Out> d;
    hn::StoreU(hn::Vec<decltype(d)>{two_in_order(two_packed(x0, x1))}, d, to);
    return hn::StoreU(hn::Vec<decltype(d)>{two_in_order(two_packed(x2, x3))}, d, to + hn::Lanes(d));
  }
#endif
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  store(x0, to);
  store(x1, to + lanes);
  store(x2, to + 2 * lanes);
  store(x3, to + 3 * lanes);
}

// f(i): the vector from element i of the block on. The last one begins within the one before.
template <class Out, class F>
HWY_INLINE void for_vectors(const Block& block, const F& f) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  auto* out = static_cast<Out*>(block.out);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= block.count; i += 4 * lanes)
    store_four(f(i), f(i + lanes), f(i + 2 * lanes), f(i + 3 * lanes), out + i);
  for (; i + lanes <= block.count; i += lanes) store(f(i), out + i);
  if (i < block.count) store(f(block.count - lanes), out + block.count - lanes);
}

// A kernel of blocks that have a vector at least, for any: a shorter one moves to where there is space for a vector.
template <BlockKernel kernel, int operands, class In, class Out>
void any_length(const Block& block) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Ints()));
  if (block.count >= lanes) return kernel(block);
  In from[operands][HWY_MAX_BYTES / 4] = {};
  Out to[HWY_MAX_BYTES / 4];
  Block whole{lanes, block.first, {}, to, block.constants};
  for (int k = 0; k < operands; ++k) {
    std::copy_n(static_cast<const In*>(block.in[k]), block.count, from[k]);
    whole.in[k] = from[k];
  }
  kernel(whole);
  std::copy_n(to, block.count, static_cast<Out*>(block.out));
}

// Shifts by as much for all elements. With AVX2 and AVX-512 one instruction where each element has its own count, and
// two where they share one.
struct Shift {
#if HWY_TARGET <= HWY_AVX2
  IntVector count;
  explicit Shift(int by) : count(hn::Set(Ints(), by)) {}
  HWY_INLINE IntVector left(IntVector x) const { return hn::Shl(x, count); }
  HWY_INLINE IntVector right(IntVector x) const { return hn::Shr(x, count); }
#else
  int count;
  explicit Shift(int by) : count(by) {}
  HWY_INLINE IntVector left(IntVector x) const { return hn::ShiftLeftSame(x, count); }
  HWY_INLINE IntVector right(IntVector x) const { return hn::ShiftRightSame(x, count); }
#endif
};

// The ways to scale elements of dtype In less their zero point: `takes` says with which constants.
struct Unscaled {  // a multiplier of 2^n, and a shift of n at most
  Shift shift;
  explicit Unscaled(const C& c) : shift(places(c)) {}
  static int places(const C& c) {
    return std::countr_zero(static_cast<std::uint32_t>(c.multiplier[0])) - c.scale_shift[0];
  }
  static bool takes(const C& c) {
    const auto multiplier = static_cast<std::uint32_t>(c.multiplier[0]);
    return std::has_single_bit(multiplier) && c.scale_shift[0] <= std::countr_zero(multiplier);
  }
  HWY_INLINE IntVector operator()(IntVector x) const { return shift.left(x); }
};
// Of i8: two products of 32 bits, by the multiplier's bits above and below the shift.
struct LowProducts {
  IntVector above, below, round;
  Shift shift;
  explicit LowProducts(const C& c)
      : round(hn::Set(Ints(), std::int32_t{1} << (c.scale_shift[0] - 1))), shift(c.scale_shift[0]) {
    above = hn::Set(Ints(), c.multiplier[0] >> c.scale_shift[0]);
    below = hn::Set(Ints(), c.multiplier[0] & ((std::int32_t{1} << c.scale_shift[0]) - 1));
  }
  static bool takes(const C& c) { return c.scale_shift[0] <= 22; }  // 9 bits, a product of 31, with the sign
  HWY_INLINE IntVector operator()(IntVector x) const {
    return hn::Add(hn::Mul(x, above), shift.right(hn::Add(hn::Mul(x, below), round)));
  }
};
// As RescaleColumns do it from a shift of 33 on. Narrow elements are shifted to the left to get there.
template <class In>
struct HighProduct {
  static constexpr int spare = sizeof(In) == 4 ? 0 : 30 - 8 * static_cast<int>(sizeof(In));
  Shift left, right;
  IntVector multiplier, round;
  explicit HighProduct(const C& c)
      : left(before(c)),
        right(after(c)),
        multiplier(hn::Set(Ints(), c.multiplier[0])),
        round(hn::Set(Ints(), std::int32_t{1} << (after(c) - 1))) {}
  static int before(const C& c) { return std::max(33 - c.scale_shift[0], 0); }
  static int after(const C& c) { return c.scale_shift[0] + before(c) - 32; }
  static bool takes(const C& c) { return 33 - c.scale_shift[0] <= spare; }
  HWY_INLINE IntVector operator()(IntVector x) const {
    if constexpr (spare > 0) x = left.left(x);
    return right.right(hn::Add(high_products(x, multiplier, multiplier), round));
  }
};
struct Product {  // any
  int right;
#if HWY_TARGET == HWY_SCALAR
  std::int64_t multiplier, round;
  explicit Product(const C& c)
      : right(c.scale_shift[0]), multiplier(c.multiplier[0]), round(std::int64_t{1} << (right - 1)) {}
  HWY_INLINE IntVector operator()(IntVector x) const {
    return hn::Set(Ints(), static_cast<std::int32_t>((hn::GetLane(x) * multiplier + round) >> right));
  }
#else
  using Longs = hn::ScalableTag<std::int64_t>;
  IntVector multiplier;
  hn::Vec<Longs> round;
  explicit Product(const C& c)
      : right(c.scale_shift[0]),
        multiplier(hn::Set(Ints(), c.multiplier[0])),
        round(hn::Set(Longs(), std::int64_t{1} << (right - 1))) {}
  HWY_INLINE IntVector operator()(IntVector x) const {
    const auto lower_halves = [&](IntVector v) HWY_ATTR {
      return hn::ShiftRightSame(hn::Add(hn::MulEven(v, multiplier), round), right);
    };
    const IntVector odds = hn::BitCast(Ints(), hn::ShiftLeft<32>(lower_halves(upper_halves(x))));
    return hn::OddEven(odds, hn::BitCast(Ints(), lower_halves(x)));
  }
#endif
};

// An operand's vectors, scaled. The zero points of i32 are 0.
template <class In, class Scale>
struct Scaled {
  const void* from;
  Scale scale;
  IntVector zero_point;
  Scaled(const void* elements, const C& c) : from(elements), scale(c), zero_point(hn::Set(Ints(), c.input_zp)) {}
  HWY_INLINE IntVector operator()(std::int64_t i) const {
    IntVector x = load<In>(from, i);
    if constexpr (sizeof(In) < 4) x = hn::Sub(x, zero_point);
    return scale(x);
  }
};

// All of RESCALE with one scale, single rounding. The signed output's limits are those of its dtype.
template <class In, class Out, class Scale>
void whole_by(const Block& block) {
  const C& c = *block.constants;
  const Scaled<In, Scale> x(block.in[0], c);
  const IntVector zero_point = hn::Set(Ints(), c.output_zp);
  for_vectors<Out>(block, [&](std::int64_t i) HWY_ATTR {
    if constexpr (sizeof(Out) < 4) return hn::Add(x(i), zero_point);
    return x(i);
  });
}
template <class In, class Out>
void whole(const Block& block) {
  const C& c = *block.constants;
  if (Unscaled::takes(c)) return whole_by<In, Out, Unscaled>(block);
  if (sizeof(In) == 1 && LowProducts::takes(c)) return whole_by<In, Out, LowProducts>(block);
  if (HighProduct<In>::takes(c)) return whole_by<In, Out, HighProduct<In>>(block);
  whole_by<In, Out, Product>(block);
}
template <class In, class Out>
constexpr BlockKernel whole_kernel = any_length<whole<In, Out>, 1, In, Out>;

// Two RESCALEs from i8, their difference or product, and a RESCALE to i8.
template <class Join, class Scale>
void joined(const Block& block) {
  const C& c = *block.constants;
  const Scaled<std::int8_t, Scale> a(block.in[0], c.operands[0]), b(block.in[1], c.operands[1]);
  const HighProduct<std::int32_t> scale(c);
  const IntVector zero_point = hn::Set(Ints(), c.output_zp);
  for_vectors<std::int8_t>(block,
                           [&](std::int64_t i) HWY_ATTR { return hn::Add(scale(Join::f(a(i), b(i))), zero_point); });
}
struct Difference {
  static HWY_INLINE IntVector f(IntVector a, IntVector b) { return hn::Sub(a, b); }
};
struct Times {
  static HWY_INLINE IntVector f(IntVector a, IntVector b) { return hn::Mul(a, b); }
};
// What adds an operand's RESCALE to a sum. The sum begins with `start` of both: what zero points and rounding come to.
struct ShiftedTerm {  // by a power of two
  Unscaled shifted;
  std::int64_t start;
  explicit ShiftedTerm(const C& c) : shifted(c), start(-(std::int64_t{c.input_zp} << Unscaled::places(c))) {}
  HWY_INLINE IntVector operator()(IntVector sum, IntVector x) const { return hn::Add(sum, shifted(x)); }
};
// multiplier = above * 2^shift + below: x * above, and what the shift leaves of x * below.
struct SplitMultiplier {
  int shift;
  std::int32_t above, below, rest;
  std::int64_t start;
  explicit SplitMultiplier(const C& c) : shift(c.scale_shift[0]) {
    const std::int64_t unit = std::int64_t{1} << shift, of_zero_point = std::int64_t{c.input_zp} * c.multiplier[0],
                       constant = unit / 2 - of_zero_point;
    above = c.multiplier[0] >> shift;
    below = static_cast<std::int32_t>(c.multiplier[0] & (unit - 1));
    start = constant >> shift;
    rest = static_cast<std::int32_t>(constant & (unit - 1));
  }
};
struct ProductTerm {
  IntVector above, below, rest;
  Shift shift;
  std::int64_t start;
  explicit ProductTerm(const C& c) : ProductTerm(SplitMultiplier(c)) {}
  explicit ProductTerm(const SplitMultiplier& m)
      : above(hn::Set(Ints(), m.above)),
        below(hn::Set(Ints(), m.below)),
        rest(hn::Set(Ints(), m.rest)),
        shift(m.shift),
        start(m.start) {}
  static bool takes(const C& c) { return LowProducts::takes(c); }
  HWY_INLINE IntVector operator()(IntVector sum, IntVector x) const {
    return hn::Add(hn::Add(sum, hn::Mul(x, above)), shift.right(hn::Add(hn::Mul(x, below), rest)));
  }
};
#if HWY_TARGET == HWY_AVX3_DL
// The same by products of 16 bits, two of which take half as long as one of 32 bits. `above` has more bits: it becomes
// two factors, of x and of x moved to the left.
struct PairTerm {
  IntVector factors, below, rest;
  Shift moved, shift;
  std::int64_t start;
  explicit PairTerm(const C& c) : PairTerm(SplitMultiplier(c)) {}
  explicit PairTerm(const SplitMultiplier& m)
      : below(hn::Set(Ints(), m.below)),
        rest(hn::Set(Ints(), m.rest)),
        moved(16 + places(m.shift)),
        shift(m.shift),
        start(m.start) {
    const int left = places(m.shift);
    factors = hn::Set(Ints(), (m.above & ((1 << left) - 1)) | m.above >> left << 16);
  }
  static int places(int shift) { return std::max(16 - shift, 0); }  // of 31 - shift bits, no more than 15 are left
  static bool takes(const C& c) { return c.scale_shift[0] >= 8 && c.scale_shift[0] <= 15; }
  HWY_INLINE IntVector operator()(IntVector sum, IntVector x) const {
    const hn::ScalableTag<std::int16_t> words;
    const IntVector low{_mm512_dpwssd_epi32(rest.raw, x.raw, below.raw)};
    const auto both = hn::OddEven(hn::BitCast(words, moved.left(x)), hn::BitCast(words, x));
    return IntVector{_mm512_dpwssd_epi32(hn::Add(sum, shift.right(low)).raw, both.raw, factors.raw)};
  }
};
#endif
template <class First, class Second, bool swapped>
void sum(const Block& block) {
  const C& c = *block.constants;
  const First a(c.operands[swapped]);
  const Second b(c.operands[!swapped]);
  const HighProduct<std::int32_t> scale(c);
  const IntVector zero_point = hn::Set(Ints(), c.output_zp),
                  start = hn::Set(Ints(), static_cast<std::int32_t>(a.start + b.start));
  const void *of_a = block.in[swapped], *of_b = block.in[!swapped];
  for_vectors<std::int8_t>(block, [&](std::int64_t i) HWY_ATTR {
    const IntVector total = b(a(start, load<std::int8_t>(of_a, i)), load<std::int8_t>(of_b, i));
    return hn::Add(scale(total), zero_point);
  });
}
template <class First, class Second, bool swapped>
constexpr BlockKernel sum_of = any_length<sum<First, Second, swapped>, 2, std::int8_t, std::int8_t>;
template <class Term>
BlockKernel sum_kernel(const C& c) {
  if (!HighProduct<std::int32_t>::takes(c)) return nullptr;
  const C &a = c.operands[0], &b = c.operands[1];
  if (Unscaled::takes(a) && Term::takes(b)) return sum_of<ShiftedTerm, Term, false>;
  if (Term::takes(a) && Unscaled::takes(b)) return sum_of<ShiftedTerm, Term, true>;
  return Term::takes(a) && Term::takes(b) ? sum_of<Term, Term, false> : nullptr;
}
template <class Join, class Scale>
BlockKernel joined_kernel(const C& c) {
  const bool fits = Scale::takes(c.operands[0]) && Scale::takes(c.operands[1]) && HighProduct<std::int32_t>::takes(c);
  return fits ? any_length<joined<Join, Scale>, 2, std::int8_t, std::int8_t> : nullptr;
}

template <class In, bool double_round = false>
void scale_slowly(const Block& block) {
  const Scales scales(block);
  const std::int64_t step = block.constants->channels == 1 ? 0 : 1;
  const auto* in = static_cast<const In*>(block.in[0]);
  auto* out = static_cast<std::int32_t*>(block.out);
  for (std::int64_t i = 0; i < block.count; ++i)
    out[i] = scale_one(in[i], scales.multiplier[i * step], scales.shift[i * step], double_round);
}

#if HWY_TARGET == HWY_SCALAR
void scale_i48(const Block& block) { scale_slowly<std::int64_t>(block); }
#else
// The i48 sums of 16-bit activations, by multipliers of 16 bits: products of less than 2^62. What is shifted to the
// right is made positive first, as instruction sets before AVX-512 have no arithmetic shift of 64 bits.
struct WideScales {
  using Words = hn::ScalableTag<std::uint64_t>;
  using WordVector = hn::Vec<Words>;
  WordVector multiplier, shift, offset;  // of half a vector's elements; offset: 2^62 and the rounding
  HWY_INLINE WideScales(const std::int32_t* multipliers, const std::int32_t* shifts) {
    const Words d;
    const hn::Rebind<std::int32_t, Words> half;
    const auto widened = [&](const std::int32_t* from) HWY_ATTR {
      return hn::BitCast(d, hn::PromoteTo(hn::RebindToSigned<Words>(), hn::LoadU(half, from)));
    };
    multiplier = widened(multipliers);
    shift = widened(shifts);
    const WordVector one = hn::Set(d, 1);
    offset = hn::Add(hn::Set(d, std::uint64_t{1} << 62), hn::Shl(one, hn::Sub(shift, one)));
  }
  HWY_INLINE WordVector operator()(const std::int64_t* from) const {
    const Words d;
    const Ints ints;
    const WordVector x = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(from));
    const hn::Repartition<std::uint32_t, Words> halves;
    const WordVector low = hn::MulEven(hn::BitCast(halves, x), hn::BitCast(halves, multiplier));
    const auto high = hn::MulEven(upper_halves(hn::BitCast(ints, x)), hn::BitCast(ints, multiplier));
    return hn::Shr(hn::Add(hn::Add(low, hn::ShiftLeft<32>(hn::BitCast(d, high))), offset), shift);
  }
  // What the 2^62 has become.
  HWY_INLINE WordVector excess() const { return hn::Shr(hn::Set(Words(), std::uint64_t{1} << 62), shift); }
};
void scale_i48(const Block& block) {
  const Ints d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), half = lanes / 2;
  const Scales scales(block);
  const auto* in = static_cast<const std::int64_t*>(block.in[0]);
  auto* out = static_cast<std::int32_t*>(block.out);
  const auto lower_words = [&](WideScales::WordVector low, WideScales::WordVector high)
                               HWY_ATTR { return hn::ConcatEven(d, hn::BitCast(d, high), hn::BitCast(d, low)); };
  const auto scaled = [&](std::int64_t i, const WideScales& low, const WideScales& high) HWY_ATTR {
    const IntVector excess = lower_words(low.excess(), high.excess());
    hn::StoreU(hn::Sub(lower_words(low(in + i), high(in + i + half)), excess), d, out + i);
  };
  std::int64_t i = 0;
  if (block.constants->channels == 1) {
    HWY_ALIGN std::int32_t multipliers[HWY_MAX_BYTES / 4], shifts[HWY_MAX_BYTES / 4];
    std::fill_n(multipliers, lanes, scales.multiplier[0]);
    std::fill_n(shifts, lanes, scales.shift[0]);
    const WideScales same(multipliers, shifts);
    for (; i + lanes <= block.count; i += lanes) scaled(i, same, same);
    for (; i < block.count; ++i) out[i] = scale_one(in[i], scales.multiplier[0], scales.shift[0], false);
  } else {
    for (; i + lanes <= block.count; i += lanes)
      scaled(i, WideScales(scales.multiplier + i, scales.shift + i),
             WideScales(scales.multiplier + i + half, scales.shift + i + half));
    for (; i < block.count; ++i) out[i] = scale_one(in[i], scales.multiplier[i], scales.shift[i], false);
  }
}
#endif

}  // namespace

BlockKernel rescale_kernel_here(const BlockKey& key) {
  using enum DType;
  const DType in = key.in, out = key.out;
  if (key.op == tosa::op::rescale) {  // whole
    if (key.per_channel || key.double_round || key.input_unsigned || key.output_unsigned) return nullptr;
    if (in == i8 && out == i32) return whole_kernel<std::int8_t, std::int32_t>;
    if (in == i32 && out == i8) return whole_kernel<std::int32_t, std::int8_t>;
    if (in == i8 && out == i8) return whole_kernel<std::int8_t, std::int8_t>;
    if (in == i32 && out == i32) return whole_kernel<std::int32_t, std::int32_t>;
    if (in == i16 && out == i32) return whole_kernel<std::int16_t, std::int32_t>;
    if (in == i32 && out == i16) return whole_kernel<std::int32_t, std::int16_t>;
    if (in == i16 && out == i16) return whole_kernel<std::int16_t, std::int16_t>;
    return nullptr;
  }
  if (key.op == block::widen) {
    if (in == i8)
      return key.input_unsigned ? map1<Widen, std::uint8_t, std::int32_t> : map1<Widen, std::int8_t, std::int32_t>;
    if (in == i16)
      return key.input_unsigned ? map1<Widen, std::uint16_t, std::int32_t> : map1<Widen, std::int16_t, std::int32_t>;
    return in == i32 ? map1<Widen, std::int32_t> : nullptr;
  }
  if (key.op == block::scale) {
    if (in == i48) return scale_i48;
    if (key.double_round) return scale_slowly<std::int32_t, true>;
    return key.per_channel ? scale_slowly<std::int32_t> : whole_kernel<std::int32_t, std::int32_t>;
  }
  if (key.op == block::narrow) {
    if (out == i8) return map1<Narrow<std::int8_t>, std::int32_t, std::int8_t>;
    if (out == i16) return map1<Narrow<std::int16_t>, std::int32_t, std::int16_t>;
    return out == i32 ? map1<Narrow<std::int32_t>, std::int32_t, std::int32_t> : nullptr;
  }
  return nullptr;
}

// Operands of sums have the scale of the result; those of products are only moved to zero.
BlockKernel joined_kernel_here(Operator op, const BlockConstants& constants) {
  if (op == tosa::op::add) {
#if HWY_TARGET == HWY_AVX3_DL
    if (const BlockKernel kernel = sum_kernel<PairTerm>(constants)) return kernel;
#endif
    return sum_kernel<ProductTerm>(constants);
  }
  if (op == tosa::op::sub) return joined_kernel<Difference, LowProducts>(constants);
  if (op == tosa::op::mul) return joined_kernel<Times, Unscaled>(constants);
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(rescale_kernel_here);
HWY_EXPORT(joined_kernel_here);
BlockKernel joined_kernel(Operator op, const BlockConstants& constants) {
  return HWY_DYNAMIC_DISPATCH(joined_kernel_here)(op, constants);
}
BlockKernel rescale_kernel(const BlockKey& key) { return HWY_DYNAMIC_DISPATCH(rescale_kernel_here)(key); }
BlockKernel block_kernel(const BlockKey& key) {
  if (BlockKernel kernel = rescale_kernel(key)) return kernel;
  if (BlockKernel kernel = float_kernel(key)) return kernel;
  return integer_kernel(key);
}
}  // namespace tosaic::cpu
#endif
