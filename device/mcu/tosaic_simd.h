/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of tosaic_mcu.c: in plain C, which is the oracle of those for Helium (tosaic_helium.h) and for DSP
   instructions (tosaic_dsp.h), and stands alone with TOSAIC_MCU_PLAIN.

   dot:  the sum of products of `length` elements; of 16 bits at most TOSAIC_LENGTH_S16, which 32 bits hold
   dots: the same of one row of elements with `rows` rows of weights, a multiple of 4, which lie `step` apart
   total: the sum of `length` elements
   taps: sums of x[tap][channel] * weights[tap][channel] over all taps, for TOSAIC_CHANNELS channels from `first` on, or
         the `count` that are left; there are at most TOSAIC_LENGTH_S16 taps
   scale: the sums of `count` channels from `first` on, with their bias, to elements first.. of y
   copy_bytes: some, not many: the pixels of a window */
#ifndef TOSAIC_SIMD_H
#define TOSAIC_SIMD_H
#include "tosaic_mcu.h"

#if !defined(TOSAIC_MCU_PLAIN) && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define TOSAIC_MCU_HELIUM 1
#elif !defined(TOSAIC_MCU_PLAIN) && defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#define TOSAIC_MCU_DSP 1
#endif

#define TOSAIC_LENGTH_S16 511 /* * 2^15 * 2^7 < 2^31 */

/* How sums times multipliers / 2^shift are exact in 32 bits; P is the product of 64. */
typedef enum {
  tosaic_by_element, /* they are not: one after the other, in 64 bits */
  tosaic_high_word,  /* (P + 2^(s-1)) >> s = ((P >> 32) + 2^(s-33)) >> (s-32), where s > 32 */
  tosaic_doubled     /* (P +- 2^30 + 2^(s-1)) >> s = (D + 2^(s-32)) >> (s-31), where s > 31 and D = (P +- 2^30) >> 31 */
} tosaic_way;
static inline int tosaic_shifts_exceed(const tosaic_scaling* s, int32_t channels, int32_t least) {
  for (int32_t c = 0; c < (s->per_channel ? channels : 1); ++c)
    if (s->shifts[c] <= least) return 0;
  return 1;
}
static inline tosaic_way tosaic_way_s8(const tosaic_scaling* s, int32_t channels) {
  if (!tosaic_shifts_exceed(s, channels, 32)) return tosaic_by_element;
  return s->double_round ? tosaic_doubled : tosaic_high_word;
}
/* Of 16 bits: sums that 32 bits hold, `length` products each, and multipliers and shifts made greater by 16 bits. */
static inline tosaic_way tosaic_way_s16(const tosaic_scaling* s, int32_t channels, const int64_t* bias,
                                        int32_t length) {
  if (length > TOSAIC_LENGTH_S16 || !tosaic_shifts_exceed(s, channels, 16)) return tosaic_by_element;
  const int64_t room = INT32_MAX - ((int64_t)length << 22);
  for (int32_t c = 0; c < channels; ++c)
    if (bias[c] > room || bias[c] < -room) return tosaic_by_element;
  return tosaic_high_word;
}
static inline void store(const tosaic_scaling* s, void* y, int32_t at, int32_t element) {
  if (s->bytes == 1)
    ((int8_t*)y)[at] = (int8_t)element;
  else
    ((int16_t*)y)[at] = (int16_t)element;
}
static inline void scale_each_s8(const tosaic_scaling* s, const int32_t* bias, const int32_t* sums, int32_t first,
                                 int32_t count, void* y) {
  for (int32_t c = first; c < first + count; ++c)
    store(s, y, c, tosaic_scaled(s, tosaic_add(sums[c - first], bias[c]), c));
}
static inline void scale_each_s16(const tosaic_scaling* s, const int64_t* bias, const int32_t* sums, int32_t first,
                                  int32_t count, int16_t* y) {
  for (int32_t c = first; c < first + count; ++c) y[c] = (int16_t)tosaic_scaled48(s, bias[c] + sums[c - first], c);
}

#if TOSAIC_MCU_HELIUM
#include "tosaic_helium.h"
#elif TOSAIC_MCU_DSP
#include "tosaic_dsp.h"
#else
#define TOSAIC_CHANNELS 4
#define TOSAIC_DOT                                         \
  int32_t sum = 0;                                         \
  for (int32_t i = 0; i < length; ++i) sum += x[i] * w[i]; \
  return sum
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t length) { TOSAIC_DOT; }
static inline int32_t dot_s16(const int16_t* x, const int8_t* w, int32_t length) { TOSAIC_DOT; }
static inline void dot4_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length) {
  for (int32_t k = 0; k < 4; ++k) sums[k] = dot_s8(x, w + k * step, length);
}
static inline void dot4_s16(int32_t* sums, const int16_t* x, const int8_t* w, int32_t step, int32_t length) {
  for (int32_t k = 0; k < 4; ++k) sums[k] = dot_s16(x, w + k * step, length);
}
#define TOSAIC_TAPS                                                                                \
  for (int32_t c = 0; c < count && c < TOSAIC_CHANNELS; ++c) {                                     \
    int32_t sum = 0;                                                                               \
    for (int32_t t = 0; t < taps; ++t) sum += x[t][first + c] * weights[t * channels + first + c]; \
    sums[c] = sum;                                                                                 \
  }
static inline void taps_s8(int32_t* sums, const int8_t* const* x, const int8_t* weights, int32_t taps, int32_t channels,
                           int32_t first, int32_t count) {
  TOSAIC_TAPS
}
static inline void taps_s16(int32_t* sums, const int16_t* const* x, const int8_t* weights, int32_t taps,
                            int32_t channels, int32_t first, int32_t count) {
  TOSAIC_TAPS
}
static inline void scale_s8(const tosaic_scaling* s, tosaic_way way, const int32_t* bias, const int32_t* sums,
                            int32_t first, int32_t count, void* y) {
  (void)way;
  scale_each_s8(s, bias, sums, first, count, y);
}
static inline void scale_s16(const tosaic_scaling* s, tosaic_way way, const int64_t* bias, const int32_t* sums,
                             int32_t first, int32_t count, int16_t* y) {
  (void)way;
  scale_each_s16(s, bias, sums, first, count, y);
}
#endif

#if !TOSAIC_MCU_HELIUM
static inline void dots_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length,
                           int32_t rows) {
  for (int32_t r = 0; r < rows; r += 4) dot4_s8(sums + r, x, w + r * step, step, length);
}
static inline void dots_s16(int32_t* sums, const int16_t* x, const int8_t* w, int32_t step, int32_t length,
                            int32_t rows) {
  for (int32_t r = 0; r < rows; r += 4) dot4_s16(sums + r, x, w + r * step, step, length);
}
static inline void copy_bytes(void* to, const void* from, int32_t bytes) { memcpy(to, from, (size_t)bytes); }
static inline int32_t total_s8(const int8_t* x, int32_t length) {
  int32_t sum = 0;
  for (int32_t i = 0; i < length; ++i) sum += x[i];
  return sum;
}
#endif
#endif
