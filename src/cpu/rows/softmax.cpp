// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "cpu/rows/row_kernels.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/elementwise/exp-inl.h"
#include "cpu/rows/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// A row with a NaN or +infinity is NaN, whatever is found to be its largest element: its exponentials add up to NaN.
// What a mask hides counts as -infinity, but for a NaN, unless it hides the row.
template <bool safe, bool masked>
void softmax(const SoftmaxCall& call) {
  const D d;
  const float infinity = std::numeric_limits<float>::infinity();
  const V none = hn::Set(d, -infinity), zero = hn::Zero(d);  // exp(none) adds nothing
  const auto larger = [](V a, V b) HWY_ATTR { return hn::Max(a, b); };
  const auto added = [](V a, V b) HWY_ATTR { return hn::Add(a, b); };
  const std::uint8_t* shown = call.shown;
  for (std::int64_t r = 0; r < call.rows; ++r, shown += masked ? call.shown_stride : 0) {
    const float* x = call.from + r * call.length;
    float* y = call.to + r * call.length;
    if (masked && std::all_of(shown, shown + call.length, [](std::uint8_t one) { return one == 0; })) {
      std::fill(y, y + call.length, safe ? 0 : std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const auto element = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
      const V v = load(d, x + i, count, none);
      if constexpr (!masked) return v;
      return hn::IfThenElse(hn::Or(load_booleans(d, shown + i, count), hn::IsNaN(v)), v, none);
    };
    float most = hn::GetLane(hn::MaxOfLanes(d, reduce_vectors(call.length, none, element, larger)));
    if (safe && !masked && most < std::numeric_limits<float>::lowest()) most = std::numeric_limits<float>::lowest();
    const V top = hn::Set(d, most);
    const auto power = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
      const V e = finite_exponential(d, hn::Sub(element(i, count), top));
      store(d, e, count, y + i);
      return e;
    };
    float total = hn::GetLane(hn::SumOfLanes(d, reduce_vectors(call.length, zero, power, added)));
    if (safe && total < 1) total = 1;
    const V part = hn::Set(d, 1 / total);
    for_vectors(call.length, [&](std::int64_t i, std::int64_t count)
                                 HWY_ATTR { store(d, hn::Mul(load(d, y + i, count, zero), part), count, y + i); });
  }
}

}  // namespace

SoftmaxKernel softmax_kernel_here(bool safe, bool masked) {
  if (masked) return safe ? softmax<true, true> : softmax<false, true>;
  return safe ? softmax<true, false> : softmax<false, false>;
}

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(softmax_kernel_here);
SoftmaxKernel softmax_kernel(bool safe, bool masked) { return HWY_DYNAMIC_DISPATCH(softmax_kernel_here)(safe, masked); }
}  // namespace tosaic::cpu
#endif
