// SPDX-License-Identifier: Apache-2.0
// Blocks of integers and booleans. Sums and products wrap (TOSA's REQUIREs say that they do not need to), in
// unsigned arithmetic so that wrapping is defined.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "cpu/elementwise/block.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/block_integer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/elementwise/block_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using C = BlockConstants;
template <class T>
using U = std::make_unsigned_t<T>;

#define TOSAIC_UNARY(Name, ...)                               \
  struct Name {                                               \
    template <class T>                                        \
    static HWY_INLINE T f(T a, [[maybe_unused]] const C& c) { \
      return static_cast<T>(__VA_ARGS__);                     \
    }                                                         \
  };
#define TOSAIC_BINARY(Name, ...)                                   \
  struct Name {                                                    \
    template <class T>                                             \
    static HWY_INLINE T f(T a, T b, [[maybe_unused]] const C& c) { \
      return static_cast<T>(__VA_ARGS__);                          \
    }                                                              \
  };
#define TOSAIC_COMPARISON(Name, ...)                       \
  struct Name {                                            \
    template <class T>                                     \
    static HWY_INLINE std::uint8_t f(T a, T b, const C&) { \
      return static_cast<std::uint8_t>(__VA_ARGS__);       \
    }                                                      \
  };

TOSAIC_BINARY(Add, static_cast<U<T>>(a) + static_cast<U<T>>(b))
TOSAIC_BINARY(Sub, static_cast<U<T>>(a) - static_cast<U<T>>(b))
TOSAIC_BINARY(Maximum, a >= b ? a : b)
TOSAIC_BINARY(Minimum, a < b ? a : b)
TOSAIC_BINARY(And, a& b)
TOSAIC_BINARY(Or, a | b)
TOSAIC_BINARY(Xor, a ^ b)
// A divisor of 0 and shifts outside the width are unpredictable in TOSA: any number will do, a trap will not.
TOSAIC_BINARY(IntDiv, b == 0 ? a : b == -1 ? static_cast<T>(-static_cast<U<T>>(a)) : a / b)
constexpr int width_mask(std::size_t bytes) { return static_cast<int>(bytes * 8 - 1); }
TOSAIC_BINARY(ShiftLeft, static_cast<std::uint32_t>(a) << (b & width_mask(sizeof(T))))
TOSAIC_BINARY(ShiftRightLogical, static_cast<U<T>>(a) >> (b & width_mask(sizeof(T))))
TOSAIC_BINARY(ShiftRight, a >> (b & width_mask(sizeof(T))))
// Half a unit up: the last bit shifted out is added.
TOSAIC_BINARY(ShiftRightRounded,
              (a >> (b & width_mask(sizeof(T)))) + ((b > 0) & (a >> ((b - (b > 0)) & width_mask(sizeof(T))))))
TOSAIC_COMPARISON(Equal, a == b)
TOSAIC_COMPARISON(Greater, a > b)
TOSAIC_COMPARISON(GreaterEqual, a >= b)
TOSAIC_UNARY(Abs, a < 0 ? static_cast<T>(-static_cast<U<T>>(a)) : a)
TOSAIC_UNARY(Not, ~a)
TOSAIC_UNARY(LogicalNot, a == 0)
TOSAIC_UNARY(LeadingZeros, std::countl_zero(static_cast<std::uint32_t>(a)))
TOSAIC_UNARY(Clamp, std::min(std::max(a, static_cast<T>(c.lowest)), static_cast<T>(c.highest)))
struct Negate {  // output_zp - (a - input_zp), saturated; i32 wraps
  template <class T>
  static HWY_INLINE T f(T a, const C& c) {
    if constexpr (sizeof(T) == 4) return static_cast<T>(-static_cast<U<T>>(a));
    const std::int32_t x = c.input_zp + c.output_zp - a;
    constexpr std::int32_t lowest = std::numeric_limits<T>::min(), highest = std::numeric_limits<T>::max();
    return static_cast<T>(std::min(std::max(x, lowest), highest));
  }
};
struct Widened {  // i8 and i16 products, i32 low halves
  template <class T>
  static HWY_INLINE std::int32_t f(T a, T b, const C&) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  }
};
struct MulShifted {  // (a * b + 2^(shift-1)) >> shift, written so that nothing overflows
  static HWY_INLINE std::int32_t f(std::int32_t a, std::int32_t b, const C& c) {
    const std::int64_t product = static_cast<std::int64_t>(a) * b;
    return static_cast<std::int32_t>(((product >> (c.shift - 1)) + 1) >> 1);
  }
};
void multiply(const Block& block) {
  block.constants->shift > 0 ? map2<MulShifted, std::int32_t>(block) : map2<Widened, std::int32_t>(block);
}
struct CastTo {
  template <class Out>
  struct To {
    template <class T>
    static HWY_INLINE Out f(T a, const C&) {
      return static_cast<Out>(a);
    }
  };
  struct ToBool {
    template <class T>
    static HWY_INLINE std::uint8_t f(T a, const C&) {
      return a != 0;
    }
  };
};
struct Table8 {
  static HWY_INLINE std::int8_t f(std::int8_t a, const C& c) {
    return static_cast<const std::int8_t*>(c.table)[static_cast<int>(a) + 128];
  }
};
// 513 entries, interpolated: 16 bits and 7 bits of fraction (spec "General Unary Functions").
struct Table16 {
  static HWY_INLINE std::int32_t f(std::int16_t a, const C& c) {
    const int index = (static_cast<int>(a) + 32768) >> 7, fraction = a & 127;
    const auto* table = static_cast<const std::int16_t*>(c.table);
    const std::int32_t base = table[index], slope = table[index + 1] - base;
    return base * 128 + slope * fraction;
  }
};

#if HWY_TARGET <= HWY_AVX2
void table16(const Block& block) {
  const hn::ScalableTag<std::int32_t> d;
  const hn::Rebind<std::int16_t, decltype(d)> d_in;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* a = static_cast<const std::int16_t*>(block.in[0]);
  auto* out = static_cast<std::int32_t*>(block.out);
  const auto* table = static_cast<const std::int32_t*>(block.constants->table);
  std::int64_t i = 0;
  for (; i + lanes <= block.count; i += lanes) {
    const auto x = hn::PromoteTo(d, hn::LoadU(d_in, a + i));
    const auto index = hn::ShiftRight<7>(hn::Add(x, hn::Set(d, 32768)));
    const auto both = hn::GatherOffset(d, table, hn::Add(index, index));  // an entry, and the next one above it
    const auto base = hn::ShiftRight<16>(hn::ShiftLeft<16>(both));
    const auto slope = hn::Sub(hn::ShiftRight<16>(both), base);
    const auto fraction = hn::And(x, hn::Set(d, 127));
    hn::StoreU(hn::Add(hn::ShiftLeft<7>(base), hn::Mul(slope, fraction)), d, out + i);
  }
  for (; i < block.count; ++i) out[i] = Table16::f(a[i], *block.constants);
}
#else
void table16(const Block& block) { map1<Table16, std::int16_t, std::int32_t>(block); }
#endif

#if HWY_TARGET == HWY_AVX3_DL
// 256 entries are four registers: two two-register permutes by the low seven bits, the eighth bit chooses.
void table8(const Block& block) {
  const auto* a = static_cast<const std::int8_t*>(block.in[0]);
  auto* out = static_cast<std::int8_t*>(block.out);
  const auto* table = static_cast<const std::int8_t*>(block.constants->table);
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  const std::int64_t count = block.count;
  for (std::int64_t i = 0; i < count; i += 64) {
    const __mmask64 used = count - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (count - i)) - 1;
    const __m512i x = _mm512_maskz_loadu_epi8(used, a + i);
    const __m512i low = _mm512_permutex2var_epi8(t0, x, t1), high = _mm512_permutex2var_epi8(t2, x, t3);
    // Inputs below zero come first in the table.
    _mm512_mask_storeu_epi8(out + i, used, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), high, low));
  }
}
#elif HWY_TARGET <= HWY_SSE4
// 16 rows of 16 entries. A byte shuffle gives 0 for a negative index and goes by the low four bits of others: with the
// index less 16 k, only what is in row k or beyond gets something, and what it gets turns row k - 1 into row k.
void table8(const Block& block) {
  const hn::ScalableTag<std::int8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* a = static_cast<const std::int8_t*>(block.in[0]);
  auto* out = static_cast<std::int8_t*>(block.out);
  const auto* table = static_cast<const std::int8_t*>(block.constants->table);
  hn::Vec<decltype(d)> below_zero[8], others[8];
  for (int k = 0; k < 8; ++k) {
    below_zero[k] = hn::LoadDup128(d, table + 16 * k);
    others[k] = hn::LoadDup128(d, table + 128 + 16 * k);
  }
  for (int k = 7; k > 0; --k) {
    below_zero[k] = hn::Xor(below_zero[k], below_zero[k - 1]);
    others[k] = hn::Xor(others[k], others[k - 1]);
  }
  const auto sign = hn::Set(d, -128), row = hn::Set(d, 16);
  std::int64_t i = 0;
  for (; i + lanes <= block.count; i += lanes) {
    auto x = hn::LoadU(d, a + i), from_lowest = hn::Xor(x, sign);
    auto y = hn::Zero(d);
    for (int k = 0; k < 8; ++k) {
      y = hn::Xor(y,
                  hn::Xor(hn::TableLookupBytesOr0(others[k], x), hn::TableLookupBytesOr0(below_zero[k], from_lowest)));
      x = hn::SaturatedSub(x, row);
      from_lowest = hn::SaturatedSub(from_lowest, row);
    }
    hn::StoreU(y, d, out + i);
  }
  for (; i < block.count; ++i) out[i] = Table8::f(a[i], *block.constants);
}
#else
void table8(const Block& block) { map1<Table8, std::int8_t>(block); }
#endif

// The kernels among those for every integer width, of one operand and of two.
template <class F>
BlockKernel unary(DType type) {
  switch (type) {
    case DType::i8: return map1<F, std::int8_t>;
    case DType::i16: return map1<F, std::int16_t>;
    case DType::i32: return map1<F, std::int32_t>;
    default: return nullptr;
  }
}
template <class F>
BlockKernel binary(DType type) {
  switch (type) {
    case DType::i8: return map2<F, std::int8_t>;
    case DType::i16: return map2<F, std::int16_t>;
    case DType::i32: return map2<F, std::int32_t>;
    default: return nullptr;
  }
}

BlockKernel select_kernel(std::size_t bytes) {
  switch (bytes) {
    case 1: return choose<std::uint8_t>;
    case 2: return choose<std::uint16_t>;
    case 4: return choose<std::uint32_t>;
    default: return nullptr;
  }
}
template <class In>
BlockKernel cast_from(DType out) {
  switch (out) {
    case DType::boolean: return map1<CastTo::ToBool, In, std::uint8_t>;
    case DType::i8: return map1<CastTo::To<std::int8_t>, In, std::int8_t>;
    case DType::i16: return map1<CastTo::To<std::int16_t>, In, std::int16_t>;
    case DType::i32: return map1<CastTo::To<std::int32_t>, In, std::int32_t>;
    default: return nullptr;
  }
}
BlockKernel cast_kernel(DType in, DType out) {
  switch (in) {
    case DType::boolean: return cast_from<std::uint8_t>(out);
    case DType::i8: return cast_from<std::int8_t>(out);
    case DType::i16: return cast_from<std::int16_t>(out);
    case DType::i32: return cast_from<std::int32_t>(out);
    default: return nullptr;
  }
}
BlockKernel product_kernel(DType in) {
  switch (in) {
    case DType::i8: return map2<Widened, std::int8_t, std::int32_t>;
    case DType::i16: return map2<Widened, std::int16_t, std::int32_t>;
    case DType::i32: return multiply;
    default: return nullptr;
  }
}

BlockKernel boolean_kernel(Operator op) {
  if (op == tosa::op::logical_and) return map2<And, std::uint8_t>;
  if (op == tosa::op::logical_or) return map2<Or, std::uint8_t>;
  if (op == tosa::op::logical_xor) return map2<Xor, std::uint8_t>;
  if (op == tosa::op::logical_not) return map1<LogicalNot, std::uint8_t>;
  return nullptr;
}
BlockKernel kernel_of_any_width(Operator op, DType in, bool rounded) {
  if (op == tosa::op::bitwise_and) return binary<And>(in);
  if (op == tosa::op::bitwise_or) return binary<Or>(in);
  if (op == tosa::op::bitwise_xor) return binary<Xor>(in);
  if (op == tosa::op::bitwise_not) return unary<Not>(in);
  if (op == tosa::op::logical_left_shift) return binary<ShiftLeft>(in);
  if (op == tosa::op::logical_right_shift) return binary<ShiftRightLogical>(in);
  if (op == tosa::op::arithmetic_right_shift) return rounded ? binary<ShiftRightRounded>(in) : binary<ShiftRight>(in);
  if (op == tosa::op::clamp) return unary<Clamp>(in);
  if (op == tosa::op::negate) return unary<Negate>(in);
  if (op == tosa::op::maximum) return binary<Maximum>(in);
  if (op == tosa::op::minimum) return binary<Minimum>(in);
  return nullptr;
}
BlockKernel kernel_of_i32(Operator op) {
  if (op == tosa::op::add) return map2<Add, std::int32_t>;
  if (op == tosa::op::sub) return map2<Sub, std::int32_t>;
  if (op == tosa::op::intdiv) return map2<IntDiv, std::int32_t>;
  if (op == tosa::op::abs) return map1<Abs, std::int32_t>;
  if (op == tosa::op::clz) return map1<LeadingZeros, std::int32_t>;
  if (op == tosa::op::equal) return map2<Equal, std::int32_t, std::uint8_t>;
  if (op == tosa::op::greater) return map2<Greater, std::int32_t, std::uint8_t>;
  if (op == tosa::op::greater_equal) return map2<GreaterEqual, std::int32_t, std::uint8_t>;
  return nullptr;
}

}  // namespace

BlockKernel integer_kernel_here(const BlockKey& key) {
  const DType in = key.in;
  if (key.op == tosa::op::select) return select_kernel(storage_size(in));
  if (key.op == tosa::op::cast) return cast_kernel(in, key.out);
  if (in == DType::boolean) return boolean_kernel(key.op);
  if (key.op == tosa::op::mul) return product_kernel(in);
  if (key.op == tosa::op::table) return in == DType::i8 ? table8 : in == DType::i16 ? table16 : nullptr;
  if (const BlockKernel any = kernel_of_any_width(key.op, in, key.rounded)) return any;
  return in == DType::i32 ? kernel_of_i32(key.op) : nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(integer_kernel_here);
BlockKernel integer_kernel(const BlockKey& key) { return HWY_DYNAMIC_DISPATCH(integer_kernel_here)(key); }
}  // namespace tosaic::cpu
#endif
