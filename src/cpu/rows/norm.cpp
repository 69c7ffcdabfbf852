// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cpu/rows/row_kernels.h"
#include "simd/dispatch.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/rows/row_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// The mean is subtracted before squares are added up, not their mean's square afterwards: rows whose elements differ by
// little against their size stay what they are.
template <bool centred>
void norm(const NormCall& call) {
  const D d;
  const V zero = hn::Zero(d);
  const auto share = static_cast<float>(1.0 / static_cast<double>(call.length));
  const auto added = [](V a, V b) HWY_ATTR { return hn::Add(a, b); };
  for (std::int64_t r = 0; r < call.rows; ++r) {
    const float* x = call.from + r * call.length;
    float* y = call.to + r * call.length;
    const auto mean_of = [&](const auto& term) HWY_ATTR {
      return hn::GetLane(hn::SumOfLanes(d, reduce_vectors(call.length, zero, term, added))) * share;
    };
    V mean = zero;
    if (centred)
      mean =
          hn::Set(d, mean_of([&](std::int64_t i, std::int64_t count) HWY_ATTR { return load(d, x + i, count, zero); }));
    const auto element = [&](std::int64_t i, std::int64_t count) HWY_ATTR {
      const V v = load(d, x + i, count, mean);
      return centred ? hn::Sub(v, mean) : v;
    };
    const float variance = mean_of([&](std::int64_t i, std::int64_t count) HWY_ATTR {
      const V v = element(i, count);
      return hn::Mul(v, v);
    });
    const V factor = hn::Set(d, 1 / std::sqrt(variance + call.epsilon));
    for_vectors(call.length, [&](std::int64_t i, std::int64_t count) HWY_ATTR {
      V v = hn::Mul(element(i, count), factor);
      if (call.weight) v = hn::Mul(v, load(d, call.weight + i, count, zero));
      if (call.bias) v = hn::Add(v, load(d, call.bias + i, count, zero));
      store(d, v, count, y + i);
    });
  }
}

}  // namespace

NormKernel norm_kernel_here(bool centred) { return centred ? norm<true> : norm<false>; }

}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tosaic::cpu {
HWY_EXPORT(norm_kernel_here);
NormKernel norm_kernel(bool centred) { return HWY_DYNAMIC_DISPATCH(norm_kernel_here)(centred); }
}  // namespace tosaic::cpu
#endif
