// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/rows_kernel.h"

#include <algorithm>
#include <cstring>

#include "simd/dispatch.h"
#include "simd/prefetch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/matrix/rows_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
using Shorts = hn::Rebind<std::uint16_t, Floats>;
constexpr int columns_at_once = RowsKernel::columns_at_once;

// Rows x 4 sums stay in registers: 24 of 32 with AVX-512, 8 of 16 elsewhere.
#if HWY_TARGET <= HWY_AVX3
constexpr int max_rows = 6;
#else
constexpr int max_rows = 2;
#endif

// Elements of a weight's row as floats; `rest` of them, then zeros.
template <DType type>
HWY_INLINE FloatVector floats_of(hn::Vec<Shorts> bits) {
  const Floats d;
  if constexpr (type == DType::f16) {
    return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, Floats>(), bits));
  } else {
    const hn::RebindToUnsigned<Floats> words;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
  }
}
template <DType type>
HWY_INLINE FloatVector load(const std::byte* from) {
  if constexpr (type == DType::f32)
    return hn::LoadU(Floats(), reinterpret_cast<const float*>(from));
  else
    return floats_of<type>(hn::LoadU(Shorts(), reinterpret_cast<const std::uint16_t*>(from)));
}
template <DType type>
HWY_INLINE FloatVector load_rest(const std::byte* from, std::size_t rest) {
  HWY_ALIGN std::byte some[HWY_MAX_BYTES] = {};
  std::memcpy(some, from, rest * (type == DType::f32 ? 4 : 2));
  return load<type>(some);
}

#if HWY_TARGET == HWY_SCALAR
using Four = hn::FixedTag<float, 1>;
#else
using Four = hn::FixedTag<float, columns_at_once>;
template <class D>
HWY_INLINE hn::Vec<Four> folded(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == columns_at_once) {
    (void)d;
    return v;
  } else {
    const hn::Half<D> half;
    return folded(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
// The sum of each of four vectors' lanes.
HWY_INLINE hn::Vec<Four> sums_of(const FloatVector (&v)[columns_at_once]) {
  const Floats d;
  const hn::RepartitionToWide<Floats> pairs;
  const auto added = [&](FloatVector a, FloatVector b) {
    return hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
  };
  const auto ab = added(v[0], v[1]), ce = added(v[2], v[3]);
  return folded(d, hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)),
                           hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce))));
}
#endif

// Sums, bias and bounds of a row's four columns, of which there are `columns`.
HWY_INLINE void finish(const FloatVector (&v)[columns_at_once], const RowsCall& call, float* to) {
  const Four d;
  const auto bounded = [&](hn::Vec<Four> x) {  // a NaN passes: it is on no side of a bound
    const auto lowest = hn::Set(d, call.lowest), highest = hn::Set(d, call.highest);
    x = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
    return hn::IfThenElse(hn::Gt(x, highest), highest, x);
  };
#if HWY_TARGET == HWY_SCALAR
  for (int c = 0; c < call.columns; ++c) hn::Store(bounded(hn::Add(v[c], hn::Set(d, call.bias[c]))), d, to + c);
#else
  const auto x = bounded(hn::Add(sums_of(v), hn::LoadU(d, call.bias)));
  if (call.columns == columns_at_once) return hn::StoreU(x, d, to);
  HWY_ALIGN float some[columns_at_once];
  hn::Store(x, d, some);
  std::memcpy(to, some, static_cast<std::size_t>(call.columns) * sizeof(float));
#endif
}

template <DType type, int rows, bool fetches>
HWY_NOINLINE void tile(const RowsCall& call) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t element = type == DType::f32 ? 4 : 2;
  // Columns that are not there are the last one once more.
  const std::byte* w[columns_at_once];
#pragma GCC unroll 4
  for (int c = 0; c < columns_at_once; ++c) w[c] = call.weight + std::min(c, call.columns - 1) * call.k * element;
  FloatVector acc[rows][columns_at_once];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns_at_once; ++c) acc[r][c] = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= call.k; i += lanes) {
    FloatVector b[columns_at_once];
#pragma GCC unroll 4
    for (int c = 0; c < columns_at_once; ++c) {
      b[c] = load<type>(w[c] + i * element);
      if (fetches) simd::prefetch(w[c] + call.ahead + i * element);
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const FloatVector a = hn::LoadU(d, call.a + r * call.a_stride + i);
#pragma GCC unroll 4
      for (int c = 0; c < columns_at_once; ++c) acc[r][c] = hn::MulAdd(a, b[c], acc[r][c]);
    }
  }
  if (const auto rest = static_cast<std::size_t>(call.k - i)) {
    FloatVector b[columns_at_once];
    for (int c = 0; c < columns_at_once; ++c) b[c] = load_rest<type>(w[c] + i * element, rest);
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const FloatVector a =
          load_rest<DType::f32>(reinterpret_cast<const std::byte*>(call.a + r * call.a_stride + i), rest);
#pragma GCC unroll 4
      for (int c = 0; c < columns_at_once; ++c) acc[r][c] = hn::MulAdd(a, b[c], acc[r][c]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r) finish(acc[r], call, call.c + r * call.c_stride);
}

// Of one row of weights that come from memory, compared with which products take no time: one column after the other,
// so that this is read from front to back.
template <DType type>
HWY_NOINLINE void one_row(const RowsCall& call) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t element = type == DType::f32 ? 4 : 2, chains = 4;
  FloatVector sums[columns_at_once];
  for (int c = 0; c < columns_at_once; ++c) {
    sums[c] = hn::Zero(d);
    if (c >= call.columns) continue;
    const std::byte* w = call.weight + c * call.k * element;
    FloatVector acc[chains];
#pragma GCC unroll 4
    for (int j = 0; j < chains; ++j) acc[j] = hn::Zero(d);
    std::int64_t i = 0;
    for (; i + chains * lanes <= call.k; i += chains * lanes) {
#pragma GCC unroll 4
      for (int j = 0; j < chains; ++j) {
        const std::int64_t at = i + j * lanes;
        acc[j] = hn::MulAdd(hn::LoadU(d, call.a + at), load<type>(w + at * element), acc[j]);
        if (j * lanes * element % 64 == 0) simd::prefetch(w + at * element + call.ahead);
      }
    }
    for (; i + lanes <= call.k; i += lanes)
      acc[0] = hn::MulAdd(hn::LoadU(d, call.a + i), load<type>(w + i * element), acc[0]);
    if (const auto rest = static_cast<std::size_t>(call.k - i))
      acc[1] = hn::MulAdd(load_rest<DType::f32>(reinterpret_cast<const std::byte*>(call.a + i), rest),
                          load_rest<type>(w + i * element, rest), acc[1]);
    sums[c] = hn::Add(hn::Add(acc[0], acc[1]), hn::Add(acc[2], acc[3]));
  }
  finish(sums, call, call.c);
}

// Of one row of weights that are in a cache: twice as many columns, while the last ones' lanes are added.
template <DType type>
HWY_NOINLINE void eight_columns(const RowsCall& call) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t element = type == DType::f32 ? 4 : 2;
  const std::int64_t pitch = call.k * element;
  FloatVector acc[2][columns_at_once];
#pragma GCC unroll 2
  for (auto& half : acc)
#pragma GCC unroll 4
    for (FloatVector& sum : half) sum = hn::Zero(d);
  const auto add = [&](FloatVector a, const auto& weights) HWY_ATTR {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half)
#pragma GCC unroll 4
      for (int c = 0; c < columns_at_once; ++c)
        acc[half][c] = hn::MulAdd(a, weights(half * columns_at_once + c), acc[half][c]);
  };
  std::int64_t i = 0;
  for (; i + lanes <= call.k; i += lanes)
    add(hn::LoadU(d, call.a + i), [&](int c) HWY_ATTR { return load<type>(call.weight + c * pitch + i * element); });
  if (const auto rest = static_cast<std::size_t>(call.k - i))
    add(load_rest<DType::f32>(reinterpret_cast<const std::byte*>(call.a + i), rest),
        [&](int c) HWY_ATTR { return load_rest<type>(call.weight + c * pitch + i * element, rest); });
  RowsCall four = call;
  four.columns = columns_at_once;
  finish(acc[0], four, call.c);
  four.bias += columns_at_once;
  finish(acc[1], four, call.c + columns_at_once);
}

template <DType type, bool fetches>
void by_rows(const RowsCall& call) {
  switch (call.rows) {
    case 1:
      if constexpr (fetches)
        return one_row<type>(call);
      else
        return call.columns == 2 * columns_at_once ? eight_columns<type>(call) : tile<type, 1, false>(call);
    case 2: return tile<type, 2, fetches>(call);
#if HWY_TARGET <= HWY_AVX3
    case 3: return tile<type, 3, fetches>(call);
    case 4: return tile<type, 4, fetches>(call);
    case 5: return tile<type, 5, fetches>(call);
    case 6: return tile<type, 6, fetches>(call);
#endif
  }
}
template <DType type>
void product(const RowsCall& call) {
  call.ahead ? by_rows<type, true>(call) : by_rows<type, false>(call);
}

template <DType type>
void widen(const std::byte* from, std::int64_t count, float* to) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load<type>(from + i * 2), d, to + i);
  if (i == count) return;
  HWY_ALIGN float some[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(load_rest<type>(from + i * 2, static_cast<std::size_t>(count - i)), d, some);
  std::memcpy(to + i, some, static_cast<std::size_t>(count - i) * sizeof(float));
}

}  // namespace

const RowsKernel& rows_kernel_here() {
  static const RowsKernel here{max_rows,           &product<DType::f32>, &product<DType::f16>, &product<DType::bf16>,
                               &widen<DType::f16>, &widen<DType::bf16>};
  return here;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {

HWY_EXPORT(rows_kernel_here);
const RowsKernel& rows_kernel() { return HWY_DYNAMIC_DISPATCH(rows_kernel_here)(); }

}  // namespace tosaic::cpu
#endif
