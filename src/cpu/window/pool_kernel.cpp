// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/pool_kernel.h"

#include <type_traits>

#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/window/pool_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// The larger one, and `b` where one is NaN.
template <class V>
HWY_INLINE V larger(V a, V b) {
#if HWY_TARGET <= HWY_SSE4  // so does x86
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}
struct Largest {
  template <class V>
  static HWY_INLINE V join(V all, V x) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>())
      return hn::IfThenElse(hn::IsNaN(x), x, larger(x, all));
    else
      return hn::Max(x, all);
  }
};
struct LargestNumber {
  template <class V>
  static HWY_INLINE V join(V all, V x) {
    return hn::IfThenElse(hn::IsNaN(all), x, larger(x, all));
  }
};
struct Sum {
  template <class V>
  static HWY_INLINE V join(V all, V x) {
    return hn::Add(all, x);
  }
};
struct Mean : Sum {};

// `vectors` neighbouring ones stay in registers over all taps.
template <class Join, int vectors, class D, class In>
HWY_INLINE void join_taps(D d, const PoolCall& call, const In* from, hn::TFromD<D>* to) {
  using Out = hn::TFromD<D>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto load = [&](const In* place) HWY_ATTR {
    if constexpr (sizeof(In) == sizeof(Out))
      return hn::LoadU(d, place);
    else
      return hn::PromoteTo(d, hn::LoadU(hn::Rebind<In, D>(), place));
  };
  hn::Vec<D> all[vectors];
  for (int v = 0; v < vectors; ++v) {
    all[v] = load(from + v * lanes);
    if constexpr (sizeof(In) < sizeof(Out)) all[v] = hn::Add(all[v], hn::Set(d, call.start));
  }
  for (std::int64_t t = 1; t < call.taps; ++t)
    for (int v = 0; v < vectors; ++v) all[v] = Join::join(all[v], load(from + t * call.tap_step + v * lanes));
  for (int v = 0; v < vectors; ++v) {
    if constexpr (std::is_same_v<Join, Mean>) all[v] = hn::Div(all[v], hn::Set(d, call.divisor));
    hn::StoreU(all[v], d, to + v * lanes);
  }
}
// One pixel, its last vector beginning within the one before; false: it has fewer elements than a vector.
template <class Join, class D, class In>
HWY_INLINE bool join_vectors(D d, const PoolCall& call, const In* from, hn::TFromD<D>* to) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (call.count < lanes) return false;
  std::int64_t i = 0;
  for (; i + 4 * lanes <= call.count; i += 4 * lanes) join_taps<Join, 4>(d, call, from + i, to + i);
  for (; i + lanes <= call.count; i += lanes) join_taps<Join, 1>(d, call, from + i, to + i);
  if (i < call.count) join_taps<Join, 1>(d, call, from + call.count - lanes, to + call.count - lanes);
  return true;
}

template <class Join, class In, class Out>
void pool(const PoolCall& call) {
  const auto* from = static_cast<const In*>(call.in);
  auto* to = static_cast<Out*>(call.out);
  for (std::int64_t p = 0; p < call.pixels; ++p, from += call.pixel_step, to += call.count) {
    if (join_vectors<Join>(hn::ScalableTag<Out>(), call, from, to)) continue;
    if (join_vectors<Join>(hn::CappedTag<Out, 16 / sizeof(Out)>(), call, from, to)) continue;
    join_vectors<Join>(hn::CappedTag<Out, 1>(), call, from, to);
  }
}

}  // namespace

PoolKernel pool_kernel_here(PoolJoin join, DType type) {
  using enum DType;
  if (join == PoolJoin::mean) return pool<Mean, float, float>;
  if (join == PoolJoin::sum)
    return type == i8    ? pool<Sum, std::int8_t, std::int32_t>
           : type == i16 ? pool<Sum, std::int16_t, std::int32_t>
           : type == i32 ? pool<Sum, std::int32_t, std::int32_t>
                         : pool<Sum, float, float>;
  if (type == i8) return pool<Largest, std::int8_t, std::int8_t>;
  if (type == i16) return pool<Largest, std::int16_t, std::int16_t>;
  return join == PoolJoin::largest ? pool<Largest, float, float> : pool<LargestNumber, float, float>;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(pool_kernel_here);
PoolKernel pool_kernel(PoolJoin join, DType type) { return HWY_DYNAMIC_DISPATCH(pool_kernel_here)(join, type); }
}  // namespace tosaic::cpu
#endif
