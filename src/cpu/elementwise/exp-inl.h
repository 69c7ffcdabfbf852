// SPDX-License-Identifier: Apache-2.0
// The exponential that all float kernels use, for inclusion in files compiled per instruction set.
#if defined(TOSAIC_CPU_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_EXP_INL_H
#undef TOSAIC_CPU_EXP_INL_H
#else
#define TOSAIC_CPU_EXP_INL_H
#endif
#include <hwy/highway.h>
#include <limits>

#include <hwy/contrib/math/math-inl.h>  // once per target: after foreach_target.h

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

using FloatTag = hwy::HWY_NAMESPACE::ScalableTag<float>;
using FloatVector = hwy::HWY_NAMESPACE::Vec<FloatTag>;

// `otherwise` where x is a number.
HWY_INLINE FloatVector keep_nan(FloatVector x, FloatVector otherwise) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::Eq(x, x), otherwise, x);
}

// Of x whose exponential is finite.
HWY_INLINE FloatVector finite_exponential(FloatTag d, FloatVector x) {
  return keep_nan(x, hwy::HWY_NAMESPACE::Exp(d, x));
}
HWY_INLINE FloatVector exponential(FloatTag d, FloatVector x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const FloatVector infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const FloatVector top = hn::Set(d, 88.7228394f);  // the largest float whose exponential is finite
  const FloatVector y = hn::Exp(d, hn::Min(x, top));
  return keep_nan(x, hn::IfThenElse(hn::Gt(x, top), infinity, y));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
