// SPDX-License-Identifier: Apache-2.0
// Blocks of floats, in f32. Functions stay within TOSA's error bounds (a few units in the last place); NaN and
// infinities come out as the mathematics says.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/narrow_float.h"
#include "cpu/elementwise/block.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise/block_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/elementwise/block_loops-inl.h"
#include "cpu/elementwise/exp-inl.h"
#include "cpu/elementwise/pieces-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using C = BlockConstants;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// ---- loops that the compiler vectorises
#define TOSAIC_FLOAT_UNARY(Name, ...)                                                       \
  struct Name {                                                                             \
    static HWY_INLINE float f(float a, [[maybe_unused]] const C& c) { return __VA_ARGS__; } \
  };
#define TOSAIC_FLOAT_BINARY(Name, Out, ...)                                                       \
  struct Name {                                                                                   \
    static HWY_INLINE Out f(float a, float b, const C&) { return static_cast<Out>(__VA_ARGS__); } \
  };
TOSAIC_FLOAT_BINARY(Add, float, a + b)
TOSAIC_FLOAT_BINARY(Sub, float, a - b)
TOSAIC_FLOAT_BINARY(Mul, float, a* b)
TOSAIC_FLOAT_BINARY(Pow, float, std::pow(a, b))
// Which operand survives when one is NaN (spec "Arithmetic Helpers"); both comparisons are made, no branch.
TOSAIC_FLOAT_BINARY(MaximumPropagate, float, ((a >= b) | (a != a)) ? a : b)
TOSAIC_FLOAT_BINARY(MinimumPropagate, float, ((a < b) | (a != a)) ? a : b)
TOSAIC_FLOAT_BINARY(MaximumIgnore, float, ((a >= b) | (b != b)) ? a : b)
TOSAIC_FLOAT_BINARY(MinimumIgnore, float, ((a < b) | (b != b)) ? a : b)
TOSAIC_FLOAT_BINARY(Equal, std::uint8_t, a == b)
TOSAIC_FLOAT_BINARY(Greater, std::uint8_t, a > b)
TOSAIC_FLOAT_BINARY(GreaterEqual, std::uint8_t, a >= b)
TOSAIC_FLOAT_UNARY(Abs, std::fabs(a))
TOSAIC_FLOAT_UNARY(Negate, 0.0f - a)
struct ClampPropagate {
  static HWY_INLINE float f(float a, const C& c) {
    const float x = a < c.lowest_f32 ? c.lowest_f32 : a;  // false for NaN: it stays
    return x > c.highest_f32 ? c.highest_f32 : x;
  }
};
struct ClampIgnore {
  static HWY_INLINE float f(float a, const C& c) {
    const float x = a >= c.lowest_f32 ? a : c.lowest_f32;
    return x > c.highest_f32 ? c.highest_f32 : x;
  }
};
struct FromInteger {
  template <class T>
  static HWY_INLINE float f(T a, const C&) {
    return static_cast<float>(a);
  }
};
struct ToBool {
  static HWY_INLINE std::uint8_t f(float a, const C&) { return a != 0; }
};

// ---- vector functions
template <class F>
void mapv(const Block& block) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const float*>(block.in[0]);
  auto* out = static_cast<float*>(block.out);
  std::int64_t i = 0;
  for (; i + lanes <= block.count; i += lanes) hn::StoreU(F::f(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == block.count) return;
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
  const auto bytes = static_cast<std::size_t>(block.count - i) * sizeof(float);
  std::memcpy(rest, in + i, bytes);
  hn::Store(F::f(d, hn::Load(d, rest)), d, rest);
  std::memcpy(out + i, rest, bytes);
}

struct Floor {
  static HWY_INLINE V f(D, V x) { return hn::Floor(x); }
};
struct Ceil {
  static HWY_INLINE V f(D, V x) { return hn::Ceil(x); }
};
struct Reciprocal {
  static HWY_INLINE V f(D d, V x) { return hn::Div(hn::Set(d, 1.0f), x); }
};
struct Rsqrt {
  static HWY_INLINE V f(D d, V x) { return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)); }
};
struct Exp {
  static HWY_INLINE V f(D d, V x) { return exponential(d, x); }
};
struct Log {
  static HWY_INLINE V f(D d, V x) {
    const V infinity = hn::Set(d, std::numeric_limits<float>::infinity()), zero = hn::Zero(d);
    V y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
    y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity), y);
    y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
    return keep_nan(x, y);
  }
};
struct Tanh {
#if HWY_TARGET <= HWY_AVX3
  static HWY_INLINE V f(D, V x) { return V{in_pieces<TanhPieces>(x.raw)}; }
#else
  static HWY_INLINE V f(D d, V x) { return keep_nan(x, hn::Tanh(d, x)); }
#endif
};
// With e = exp(-|x|) nothing overflows: 1 / (1 + e), or e / (1 + e) for negative x.
struct Sigmoid {
  static HWY_INLINE V f(D d, V x) {
    const V one = hn::Set(d, 1.0f);
    const V e = finite_exponential(d, hn::Neg(hn::Abs(x)));
    const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
    return keep_nan(x, hn::Div(numerator, hn::Add(one, e)));
  }
};
// Up to 0.9: x + x P(x^2); beyond, 1 - exp(Q(|x|)) with Q the logarithm of erfc, up to 4 where erf is 1 in f32.
// P and Q are minimax fits of our own; both branches are within about 1.1 units in the last place.
struct Erf {
#if HWY_TARGET <= HWY_AVX3
  static HWY_INLINE V f(D, V x) { return V{in_pieces<ErfPieces>(x.raw)}; }
#else
  static HWY_INLINE V f(D d, V x) {
    const V t = hn::Min(hn::Abs(x), hn::Set(d, 4.0f));
    const V s = hn::Mul(x, x);
    V p = hn::Set(d, -0.0006111288676f);
    p = hn::MulAdd(p, s, hn::Set(d, 0.0050162277184f));
    p = hn::MulAdd(p, s, hn::Set(d, -0.0267819557339f));
    p = hn::MulAdd(p, s, hn::Set(d, 0.1128223016858f));
    p = hn::MulAdd(p, s, hn::Set(d, -0.3761253356934f));
    p = hn::MulAdd(p, s, hn::Set(d, 0.1283791512251f));
    const V small = hn::MulAdd(p, x, x);
    V q = hn::Set(d, -2.0909676095e-05f);
    q = hn::MulAdd(q, t, hn::Set(d, 0.0004323043103796f));
    q = hn::MulAdd(q, t, hn::Set(d, -0.0041605331934885f));
    q = hn::MulAdd(q, t, hn::Set(d, 0.0250915121287107f));
    q = hn::MulAdd(q, t, hn::Set(d, -0.1082366406917572f));
    q = hn::MulAdd(q, t, hn::Set(d, -0.6333866119384766f));
    q = hn::MulAdd(q, t, hn::Set(d, -1.1294951438903809f));
    q = hn::MulAdd(q, t, hn::Set(d, 0.0001705536851659f));
    const V one = hn::Set(d, 1.0f);
    const V large = hn::CopySign(hn::Sub(one, finite_exponential(d, q)), x);
    return keep_nan(x, hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.9f)), small, large));
  }
#endif
};
// Highway's reduction by pi holds up to 39000; beyond, and for infinities, the library's function is asked.
template <bool cosine>
struct Sine {
  static HWY_INLINE V f(D d, V x) {
    const V y = cosine ? hn::Cos(d, x) : hn::Sin(d, x);
    const auto near = hn::Le(hn::Abs(x), hn::Set(d, 39000.0f));
    if (HWY_LIKELY(hn::AllTrue(d, near))) return y;
    HWY_ALIGN float in[HWY_MAX_BYTES / sizeof(float)], out[HWY_MAX_BYTES / sizeof(float)];
    hn::Store(x, d, in);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) out[i] = cosine ? std::cos(in[i]) : std::sin(in[i]);
    return hn::IfThenElse(near, y, hn::Load(d, out));
  }
};

// Rounds to nearest even and saturates.
template <class Out>
void to_integer(const Block& block) {
  const D d;
  const hn::ScalableTag<std::int32_t> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* in = static_cast<const float*>(block.in[0]);
  auto* out = static_cast<Out*>(block.out);
  const std::int32_t lowest = std::numeric_limits<Out>::min(), highest = std::numeric_limits<Out>::max();
  const V low = hn::Set(d, static_cast<float>(lowest)), high = hn::Set(d, static_cast<float>(highest));
  const hn::Rebind<Out, D> narrow;
  const auto converted = [&](const float* from, Out* to) {
    const V x = hn::LoadU(d, from);
    auto y = hn::NearestInt(hn::Max(low, hn::Min(high, x)));
    // For i32 `high` is 2^31 and does not fit: the conversion there is not defined by every instruction set.
    y = hn::IfThenElse(hn::RebindMask(di, hn::Ge(x, high)), hn::Set(di, highest), y);
    if constexpr (sizeof(Out) == 4)
      hn::StoreU(y, di, to);
    else
      hn::StoreU(hn::DemoteTo(narrow, y), narrow, to);
  };
  std::int64_t i = 0;
  for (; i + lanes <= block.count; i += lanes) converted(in + i, out + i);
  if (i == block.count) return;
  const auto rest = static_cast<std::size_t>(block.count - i);
  HWY_ALIGN float from[HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN Out to[HWY_MAX_BYTES / sizeof(float)];
  std::memcpy(from, in + i, rest * sizeof(float));
  converted(from, to);
  std::memcpy(out + i, to, rest * sizeof(Out));
}

// ---- narrow floats. In blocks they are f32; `load` and `store` are the edges, `round` drops to the narrow grid.
HWY_INLINE std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }
HWY_INLINE std::uint32_t bf16_bits(float x) {  // to nearest even; NaN stays NaN
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return x != x ? 0x7fc0u : rounded;
}
struct LoadBF16 {
  static HWY_INLINE float f(std::uint16_t a, const C&) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(a) << 16);
  }
};
struct RoundBF16 {
  static HWY_INLINE float f(float a, const C&) { return std::bit_cast<float>(bf16_bits(a) << 16); }
};
struct StoreBF16 {
  static HWY_INLINE std::uint16_t f(float a, const C&) { return static_cast<std::uint16_t>(bf16_bits(a)); }
};

#if HWY_TARGET <= HWY_AVX2
template <int part>  // 0: load, 1: round, 2: store
void half(const Block& block) {
  using In = std::conditional_t<part == 0, std::uint16_t, float>;
  using Out = std::conditional_t<part == 2, std::uint16_t, float>;
  const auto* in = static_cast<const In*>(block.in[0]);
  auto* out = static_cast<Out*>(block.out);
  auto eight = [](const In* from, Out* to) HWY_ATTR {
    if constexpr (part == 0) {
      _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
    } else {
      const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
      if constexpr (part == 1)
        _mm256_storeu_ps(to, _mm256_cvtph_ps(h));
      else
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), h);
    }
  };
  std::int64_t i = 0;
  for (; i + 8 <= block.count; i += 8) eight(in + i, out + i);
  if (i == block.count) return;
  In from[8] = {};
  Out to[8];
  const auto rest = static_cast<std::size_t>(block.count - i);
  std::memcpy(from, in + i, rest * sizeof(In));
  eight(from, to);
  std::memcpy(out + i, to, rest * sizeof(Out));
}
#else
struct HalfPart {
  static float f(std::uint16_t a, const C&) { return static_cast<float>(Half::from_bits(a)); }
  static float f(float a, const C&) { return static_cast<float>(Half(static_cast<double>(a))); }
};
struct HalfStore {
  static std::uint16_t f(float a, const C&) { return Half(static_cast<double>(a)).bits; }
};
template <int part>
void half(const Block& block) {
  if constexpr (part == 0) map1<HalfPart, std::uint16_t, float>(block);
  if constexpr (part == 1) map1<HalfPart, float, float>(block);
  if constexpr (part == 2) map1<HalfStore, float, std::uint16_t>(block);
}
#endif

}  // namespace

BlockKernel float_kernel_here(const BlockKey& key) {
  using enum DType;
  const Operator op = key.op;
  if (op == block::load)
    return key.in == f16 ? half<0> : key.in == bf16 ? map1<LoadBF16, std::uint16_t, float> : nullptr;
  if (op == block::round) return key.out == f16 ? half<1> : key.out == bf16 ? map1<RoundBF16, float> : nullptr;
  if (op == block::store)
    return key.out == f16 ? half<2> : key.out == bf16 ? map1<StoreBF16, float, std::uint16_t> : nullptr;
  if (op == tosa::op::cast) {
    if (key.out == f32) {
      if (key.in == i8) return map1<FromInteger, std::int8_t, float>;
      if (key.in == i16) return map1<FromInteger, std::int16_t, float>;
      if (key.in == i32) return map1<FromInteger, std::int32_t, float>;
      return nullptr;
    }
    if (key.in != f32) return nullptr;
    if (key.out == boolean) return map1<ToBool, float, std::uint8_t>;
    if (key.out == i8) return to_integer<std::int8_t>;
    if (key.out == i16) return to_integer<std::int16_t>;
    if (key.out == i32) return to_integer<std::int32_t>;
    return nullptr;
  }
  if (key.in != f32 || op == tosa::op::select) return nullptr;
  if (op == tosa::op::add) return map2<Add, float>;
  if (op == tosa::op::sub) return map2<Sub, float>;
  if (op == tosa::op::mul) return map2<Mul, float>;
  if (op == tosa::op::pow) return map2<Pow, float>;
  if (op == tosa::op::maximum) return key.ignore_nan ? map2<MaximumIgnore, float> : map2<MaximumPropagate, float>;
  if (op == tosa::op::minimum) return key.ignore_nan ? map2<MinimumIgnore, float> : map2<MinimumPropagate, float>;
  if (op == tosa::op::clamp) return key.ignore_nan ? map1<ClampIgnore, float> : map1<ClampPropagate, float>;
  if (op == tosa::op::equal) return map2<Equal, float, std::uint8_t>;
  if (op == tosa::op::greater) return map2<Greater, float, std::uint8_t>;
  if (op == tosa::op::greater_equal) return map2<GreaterEqual, float, std::uint8_t>;
  if (op == tosa::op::abs) return map1<Abs, float>;
  if (op == tosa::op::negate) return map1<Negate, float>;
  if (op == tosa::op::floor) return mapv<Floor>;
  if (op == tosa::op::ceil) return mapv<Ceil>;
  if (op == tosa::op::reciprocal) return mapv<Reciprocal>;
  if (op == tosa::op::rsqrt) return mapv<Rsqrt>;
  if (op == tosa::op::exp) return mapv<Exp>;
  if (op == tosa::op::log) return mapv<Log>;
  if (op == tosa::op::tanh) return mapv<Tanh>;
  if (op == tosa::op::sigmoid) return mapv<Sigmoid>;
  if (op == tosa::op::erf) return mapv<Erf>;
  if (op == tosa::op::sin) return mapv<Sine<false>>;
  if (op == tosa::op::cos) return mapv<Sine<true>>;
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(float_kernel_here);
BlockKernel float_kernel(const BlockKey& key) { return HWY_DYNAMIC_DISPATCH(float_kernel_here)(key); }
}  // namespace tosaic::cpu
#endif
