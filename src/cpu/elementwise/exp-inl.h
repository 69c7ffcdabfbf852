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

#if HWY_TARGET <= HWY_AVX3
// 2^n (1 + r + r^2 Q(r)) with n the nearest whole number to x / ln 2 and r = x - n ln 2; Q is a minimax fit of our own.
// Within about a unit in the last place, also where the result is smaller than a normal float.
HWY_INLINE FloatVector exponential(FloatTag d, FloatVector x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto number = [&](float value) { return hn::Set(d, value); };
  // Beyond, results are infinity and 0. The second operand passes where it is NaN. What gives 0 is not computed:
  // results that are no normal floats take hundreds of clocks.
  const __mmask16 counts = _mm512_cmp_ps_mask(x.raw, number(-104.0f).raw, _CMP_NLT_UQ);
  x = FloatVector{_mm512_min_ps(number(90.0f).raw, x.raw)};
  const FloatVector n = hn::Round(hn::Mul(x, number(1.4426950216293335f)));
  FloatVector r = hn::NegMulAdd(n, number(0.693359375f), x);
  r = hn::NegMulAdd(n, number(-0.00021219444170128554f), r);
  FloatVector q = number(0.0013814539415761828f);
  q = hn::MulAdd(q, r, number(0.00836874544620514f));
  q = hn::MulAdd(q, r, number(0.04166838899254799f));
  q = hn::MulAdd(q, r, number(0.1666652113199234f));
  q = hn::MulAdd(q, r, number(0.4999999403953552f));
  const FloatVector y = hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), number(1.0f));
  return FloatVector{_mm512_maskz_scalef_ps(counts, y.raw, n.raw)};
}
// Of x whose exponential is finite.
HWY_INLINE FloatVector finite_exponential(FloatTag d, FloatVector x) { return exponential(d, x); }
#else
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
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
