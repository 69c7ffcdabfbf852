// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/rows/row_kernels.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows/quantise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/rows/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// The lanes of the first `count` elements, whole numbers from -128 to 127.
HWY_INLINE void store_int8(D d, V v, std::int64_t count, std::int8_t* to) {
  const hn::Rebind<std::int8_t, D> narrow;
  const auto bytes = hn::DemoteTo(narrow, hn::ConvertTo(hn::RebindToSigned<D>(), v));
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::StoreU(bytes, narrow, to);
  HWY_ALIGN std::int8_t all[HWY_MAX_BYTES / sizeof(float)];
  hn::StoreU(bytes, narrow, all);
  std::memcpy(to, all, static_cast<std::size_t>(count));
}

// Every operation is one of the definition's, in its order, so that all bits are those of TOSA's. Rows with a NaN or an
// infinity have no result there: CAST has none for a NaN.
void quantise_rows(const QuantiseRowsCall& call) {
  const D d;
  const V none = hn::Zero(d), lowest = hn::Set(d, -128), highest = hn::Set(d, 127);
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const float* x = call.from + r * call.length;
    const auto element = [&](std::int64_t i, std::int64_t count) HWY_ATTR { return load(d, x + i, count, none); };
    const float least = hn::GetLane(
        hn::MinOfLanes(d, reduce_vectors(call.length, none, element, [](V a, V b) HWY_ATTR { return hn::Min(a, b); })));
    const float most = hn::GetLane(
        hn::MaxOfLanes(d, reduce_vectors(call.length, none, element, [](V a, V b) HWY_ATTR { return hn::Max(a, b); })));
    const float scale = std::max((most - least) * static_cast<float>(1.0 / 255), call.least_scale);
    const float inverse = 1 / scale;
    const float zero = std::clamp(-128 - std::nearbyint(least * inverse), -128.0f, 127.0f);
    const V inverses = hn::Set(d, inverse), zeros = hn::Set(d, zero);
    for_vectors(call.length, [&](std::int64_t i, std::int64_t count) HWY_ATTR {
      const V q = hn::Add(hn::Round(hn::Mul(element(i, count), inverses)), zeros);
      store_int8(d, hn::Min(hn::Max(q, lowest), highest), count, call.quantised + r * call.length + i);
    });
    call.scale[r] = scale;
    call.zero[r] = zero;
  }
}

}  // namespace

QuantiseRowsKernel quantise_rows_kernel_here() { return quantise_rows; }

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(quantise_rows_kernel_here);
QuantiseRowsKernel quantise_rows_kernel() { return HWY_DYNAMIC_DISPATCH(quantise_rows_kernel_here)(); }
}  // namespace tosaic::cpu
#endif
