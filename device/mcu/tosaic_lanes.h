/* SPDX-License-Identifier: Apache-2.0 */
/* Integers, as many at a time as the processor has lanes: four with Helium, else one, of which everything is what
   tosaic_mcu.h does. Printed loops go over rows of `size` elements:

     for (int32_t i = 0; i < size; i += TOSAIC_LANES) {
       const tosaic_some some = tosaic_lanes_some(size, i);   // the lanes that are inside the row
       const tosaic_lanes x = tosaic_lanes_load_s8(in + i, some);
       tosaic_lanes_store_s8(out + i, tosaic_lanes_clamp(x, 0, 127), some);
     }

   Lanes outside hold any number. Scalar operands are constants of the model. */
#ifndef TOSAIC_LANES_H
#define TOSAIC_LANES_H
#include "tosaic_mcu.h"

#if !defined(TOSAIC_MCU_PLAIN) && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include <arm_mve.h>

#define TOSAIC_LANES 4
typedef int32x4_t tosaic_lanes;
typedef mve_pred16_t tosaic_some;
/* Rows whose size is a multiple of four have no lanes outside, and compilers know it. */
#define TOSAIC_ALL(some) (__builtin_constant_p(some) && (some) == 0xffff)
#define TOSAIC_INLINE static inline __attribute__((always_inline))

TOSAIC_INLINE tosaic_some tosaic_lanes_some(int32_t size, int32_t at) {
  return __builtin_constant_p(size % 4 == 0) && size % 4 == 0 ? 0xffff : vctp32q((uint32_t)(size - at));
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_load_s8(const int8_t* x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vldrbq_s32(x) : vldrbq_z_s32(x, some);
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_load_s16(const int16_t* x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vldrhq_s32(x) : vldrhq_z_s32(x, some);
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_load_s32(const int32_t* x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vldrwq_s32(x) : vldrwq_z_s32(x, some);
}
TOSAIC_INLINE void tosaic_lanes_store_s8(int8_t* y, tosaic_lanes v, tosaic_some some) {
  TOSAIC_ALL(some) ? vstrbq_s32(y, v) : vstrbq_p_s32(y, v, some);
}
TOSAIC_INLINE void tosaic_lanes_store_s16(int16_t* y, tosaic_lanes v, tosaic_some some) {
  TOSAIC_ALL(some) ? vstrhq_s32(y, v) : vstrhq_p_s32(y, v, some);
}
TOSAIC_INLINE void tosaic_lanes_store_s32(int32_t* y, tosaic_lanes v, tosaic_some some) {
  TOSAIC_ALL(some) ? vstrwq_s32(y, v) : vstrwq_p_s32(y, v, some);
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_all(int32_t x) { return vdupq_n_s32(x); }

TOSAIC_INLINE tosaic_lanes tosaic_lanes_add(tosaic_lanes a, tosaic_lanes b) { return vaddq_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_sub(tosaic_lanes a, tosaic_lanes b) { return vsubq_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_mul(tosaic_lanes a, tosaic_lanes b) { return vmulq_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_larger(tosaic_lanes a, tosaic_lanes b) { return vmaxq_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_smaller(tosaic_lanes a, tosaic_lanes b) { return vminq_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_abs(tosaic_lanes a) { return vabsq_s32(a); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_plus(tosaic_lanes a, int32_t b) { return vaddq_n_s32(a, b); }
TOSAIC_INLINE tosaic_lanes tosaic_lanes_clamp(tosaic_lanes a, int32_t low, int32_t high) {
  return vminq_s32(vmaxq_s32(a, vdupq_n_s32(low)), vdupq_n_s32(high));
}

/* P, the product, has the words H and L. (P + 2^(s-1)) >> s is, where s > 32, (H + 2^(s-33)) >> (s-32): L decides
   nothing. Else it is H * 2^(32-s) + ((L + 2^(s-1)) >> s), as 2^s divides H * 2^32. VRSHL rounds half up, without
   losing the carry. */
TOSAIC_INLINE tosaic_lanes tosaic_lanes_scale(tosaic_lanes v, int32_t multiplier, int shift) {
  if (multiplier == 1 << 30 && shift <= 30) return vshlq_r_s32(v, 30 - shift);
  const int32x4_t high = vmulhq_s32(v, vdupq_n_s32(multiplier));
  if (shift > 32) return vrshlq_n_s32(high, 32 - shift);
  const uint32x4_t low = vreinterpretq_u32_s32(vmulq_n_s32(v, multiplier));
  return vaddq_s32(vshlq_r_s32(high, 32 - shift), vreinterpretq_s32_u32(vrshlq_n_u32(low, -shift)));
}
/* (P +- 2^30 + 2^(s-1)) >> s is (D + 2^(s-32)) >> (s-31), D = (P +- 2^30) >> 31, where s > 31: 2^31 divides the rest.
   VQRDMULH is (P + 2^30) >> 31: of a negative value, 1 more than D. */
TOSAIC_INLINE tosaic_lanes tosaic_lanes_scale_twice(tosaic_lanes v, int32_t multiplier, int shift) {
  if (shift <= 31) return tosaic_lanes_scale(v, multiplier, shift);
  return vrshlq_n_s32(vaddq_s32(vqrdmulhq_n_s32(v, multiplier), vshrq_n_s32(v, 31)), 31 - shift);
}

/* As tosaic_mean. */
TOSAIC_INLINE tosaic_lanes tosaic_lanes_mean(tosaic_lanes sum, int32_t count, int32_t zero_point, int32_t low,
                                             int32_t high) {
  const tosaic_reciprocal r = tosaic_reciprocal_of(count);
  return tosaic_lanes_clamp(tosaic_lanes_plus(tosaic_lanes_scale(sum, r.multiplier, r.shift), zero_point), low, high);
}

TOSAIC_INLINE tosaic_lanes tosaic_lanes_table8(const int8_t* table, tosaic_lanes v) {
  return vldrbq_gather_offset_s32(table, vreinterpretq_u32_s32(vaddq_n_s32(v, 128)));
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_table16(const int16_t* table, tosaic_lanes v) {
  const uint32x4_t at = vreinterpretq_u32_s32(vaddq_n_s32(vshrq_n_s32(v, 7), 256));
  const int32x4_t a = vldrhq_gather_shifted_offset_s32(table, at);
  const int32x4_t b = vldrhq_gather_shifted_offset_s32(table + 1, at);
  const int32x4_t part = vandq_s32(v, vdupq_n_s32(0x7f));
  return vaddq_s32(vshlq_n_s32(a, 7), vmulq_s32(vsubq_s32(b, a), part));
}

/* Folding `x` into what each lane has gathered, and the lanes into one. */
TOSAIC_INLINE tosaic_lanes tosaic_lanes_fold_add(tosaic_lanes sum, tosaic_lanes x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vaddq_s32(sum, x) : vaddq_m_s32(sum, sum, x, some);
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_fold_larger(tosaic_lanes sum, tosaic_lanes x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vmaxq_s32(sum, x) : vmaxq_m_s32(sum, sum, x, some);
}
TOSAIC_INLINE tosaic_lanes tosaic_lanes_fold_smaller(tosaic_lanes sum, tosaic_lanes x, tosaic_some some) {
  return TOSAIC_ALL(some) ? vminq_s32(sum, x) : vminq_m_s32(sum, sum, x, some);
}
TOSAIC_INLINE int32_t tosaic_lanes_one_add(tosaic_lanes v) { return vaddvq_s32(v); }
TOSAIC_INLINE int32_t tosaic_lanes_one_larger(tosaic_lanes v) { return vmaxvq_s32(INT32_MIN, v); }
TOSAIC_INLINE int32_t tosaic_lanes_one_smaller(tosaic_lanes v) { return vminvq_s32(INT32_MAX, v); }

#else
#define TOSAIC_LANES 1
typedef int32_t tosaic_lanes;
typedef int tosaic_some;
#define tosaic_lanes_some(size, at) ((size) > (at))
static inline int32_t tosaic_lanes_load_s8(const int8_t* x, tosaic_some some) { return (void)some, *x; }
static inline int32_t tosaic_lanes_load_s16(const int16_t* x, tosaic_some some) { return (void)some, *x; }
static inline int32_t tosaic_lanes_load_s32(const int32_t* x, tosaic_some some) { return (void)some, *x; }
static inline void tosaic_lanes_store_s8(int8_t* y, int32_t v, tosaic_some some) { (void)some, *y = (int8_t)v; }
static inline void tosaic_lanes_store_s16(int16_t* y, int32_t v, tosaic_some some) { (void)some, *y = (int16_t)v; }
static inline void tosaic_lanes_store_s32(int32_t* y, int32_t v, tosaic_some some) { (void)some, *y = v; }
#define tosaic_lanes_all(x) (int32_t)(x)
#define tosaic_lanes_add tosaic_add
#define tosaic_lanes_sub tosaic_sub
#define tosaic_lanes_mul tosaic_mul
#define tosaic_lanes_larger tosaic_larger
#define tosaic_lanes_smaller tosaic_smaller
#define tosaic_lanes_abs tosaic_abs
#define tosaic_lanes_plus tosaic_plus
#define tosaic_lanes_clamp tosaic_clamp
#define tosaic_lanes_scale tosaic_scale
#define tosaic_lanes_scale_twice tosaic_scale_twice
#define tosaic_lanes_mean tosaic_mean
#define tosaic_lanes_table8 tosaic_table8
#define tosaic_lanes_table16 tosaic_table16
#define tosaic_lanes_fold_add(sum, x, some) ((void)(some), tosaic_add(sum, x))
#define tosaic_lanes_fold_larger(sum, x, some) ((void)(some), tosaic_larger(sum, x))
#define tosaic_lanes_fold_smaller(sum, x, some) ((void)(some), tosaic_smaller(sum, x))
#define tosaic_lanes_one_add(v) (v)
#define tosaic_lanes_one_larger(v) (v)
#define tosaic_lanes_one_smaller(v) (v)
#endif
#endif
