/* SPDX-License-Identifier: Apache-2.0 */
/* tosaic_simd.h for DSP instructions. */
#ifndef TOSAIC_DSP_H
#define TOSAIC_DSP_H
#include <arm_acle.h>
#define TOSAIC_CHANNELS 4

static inline uint32_t word_at(const void* address) {
  uint32_t word;
  memcpy(&word, address, 4);
  return word;
}
/* Four bytes as two pairs of 16 bits: 0 and 2, 1 and 3. */
static inline int16x2_t even_bytes(uint32_t a) { return __sxtb16((int8x4_t)a); }
static inline int16x2_t odd_bytes(uint32_t a) {
  int16x2_t odd; /* compilers rotate first */
  __asm("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(a));
  return odd;
}
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t length) {
  int32_t sum = 0;
  for (; length >= 4; length -= 4, x += 4, w += 4) {
    const uint32_t a = word_at(x), b = word_at(w);
    sum = __smlad(even_bytes(a), even_bytes(b), sum);
    sum = __smlad(odd_bytes(a), odd_bytes(b), sum);
  }
  for (; length > 0; --length) sum += *x++ * *w++;
  return sum;
}
/* In assembly: compilers run out of registers. Rows 1 and 3 lie `step` behind w and w2. */
/* clang-format off */
#define TOSAIC_ROW(LOAD, SUM)                  \
  "ldr %[b], " LOAD "\n"                       \
  "sxtb16 %[pair], %[b]\n"                     \
  "sxtb16 %[b], %[b], ror #8\n"                \
  "smlad " SUM ", %[even], %[pair], " SUM "\n" \
  "smlad " SUM ", %[odd], %[b], " SUM "\n"
static inline void dot4_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length) {
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, fours = length >> 2, even, odd, pair, b;
  const int8_t* w2 = w + 2 * step;
  if (fours > 0)
    __asm volatile(
        "1:\n"
        "ldr %[odd], [%[x]], #4\n"
        "sxtb16 %[even], %[odd]\n"
        "sxtb16 %[odd], %[odd], ror #8\n"
        TOSAIC_ROW("[%[w], %[step]]", "%[s1]")
        TOSAIC_ROW("[%[w]], #4", "%[s0]")
        TOSAIC_ROW("[%[w2], %[step]]", "%[s3]")
        TOSAIC_ROW("[%[w2]], #4", "%[s2]")
        "subs %[fours], %[fours], #1\n"
        "bne 1b\n"
        : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [x] "+r"(x), [w] "+r"(w), [w2] "+r"(w2),
          [fours] "+r"(fours), [even] "=&r"(even), [odd] "=&r"(odd), [pair] "=&r"(pair), [b] "=&r"(b)
        : [step] "r"(step)
        : "memory", "cc");
  for (length &= 3; length > 0; --length, ++x, ++w, ++w2)
    s0 += *x * w[0], s1 += *x * w[step], s2 += *x * w2[0], s3 += *x * w2[step];
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
/* clang-format on */
/* Elements 0 and 2, 1 and 3 of four of 16 bits. */
static inline int16x2_t even_of(uint32_t low, uint32_t high) { return (int16x2_t)((low & 0xffff) | high << 16); }
static inline int16x2_t odd_of(uint32_t low, uint32_t high) { return (int16x2_t)(low >> 16 | (high & 0xffff0000u)); }
static inline int32_t dot_s16(const int16_t* x, const int8_t* w, int32_t length) {
  int32_t sum = 0;
  for (; length >= 4; length -= 4, x += 4, w += 4) {
    const uint32_t low = word_at(x), high = word_at(x + 2), b = word_at(w);
    sum = __smlad(even_of(low, high), even_bytes(b), sum);
    sum = __smlad(odd_of(low, high), odd_bytes(b), sum);
  }
  for (; length > 0; --length) sum += *x++ * *w++;
  return sum;
}
static inline void dot4_s16(int32_t* sums, const int16_t* x, const int8_t* w, int32_t step, int32_t length) {
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const int8_t *w1 = w + step, *w2 = w1 + step, *w3 = w2 + step;
  for (; length >= 4; length -= 4, x += 4, w += 4, w1 += 4, w2 += 4, w3 += 4) {
    const uint32_t low = word_at(x), high = word_at(x + 2), b0 = word_at(w), b1 = word_at(w1), b2 = word_at(w2),
                   b3 = word_at(w3);
    const int16x2_t even = even_of(low, high), odd = odd_of(low, high);
    s0 = __smlad(odd, odd_bytes(b0), __smlad(even, even_bytes(b0), s0));
    s1 = __smlad(odd, odd_bytes(b1), __smlad(even, even_bytes(b1), s1));
    s2 = __smlad(odd, odd_bytes(b2), __smlad(even, even_bytes(b2), s2));
    s3 = __smlad(odd, odd_bytes(b3), __smlad(even, even_bytes(b3), s3));
  }
  for (; length > 0; --length, ++x) s0 += *x * *w++, s1 += *x * *w1++, s2 += *x * *w2++, s3 += *x * *w3++;
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
#define TOSAIC_TAPS_LEFT                                                                   \
  for (int32_t c = 0; c < count; ++c) {                                                    \
    int32_t sum = 0;                                                                       \
    for (int32_t t = 0; t < taps; ++t) sum += x[t][first + c] * weights[t * channels + c]; \
    sums[c] = sum;                                                                         \
  }
static inline void taps_s8(int32_t sums[4], const int8_t* const* x, const int8_t* weights, int32_t taps,
                           int32_t channels, int32_t first, int32_t count) {
  weights += first;
  if (count < 4) {
    TOSAIC_TAPS_LEFT
    return;
  }
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (int32_t t = 0; t < taps; ++t, weights += channels) {
    const uint32_t a = word_at(x[t] + first), b = word_at(weights);
    const int16x2_t even = even_bytes(a), odd = odd_bytes(a), even_b = even_bytes(b), odd_b = odd_bytes(b);
    s0 = __smlabb(even, even_b, s0), s2 = __smlatt(even, even_b, s2);
    s1 = __smlabb(odd, odd_b, s1), s3 = __smlatt(odd, odd_b, s3);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
static inline void taps_s16(int32_t sums[4], const int16_t* const* x, const int8_t* weights, int32_t taps,
                            int32_t channels, int32_t first, int32_t count) {
  weights += first;
  if (count < 4) {
    TOSAIC_TAPS_LEFT
    return;
  }
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (int32_t t = 0; t < taps; ++t, weights += channels) {
    const int16x2_t low = (int16x2_t)word_at(x[t] + first), high = (int16x2_t)word_at(x[t] + first + 2);
    const uint32_t b = word_at(weights);
    const int16x2_t even_b = even_bytes(b), odd_b = odd_bytes(b);
    s0 = __smlabb(low, even_b, s0), s1 = __smlatb(low, odd_b, s1);
    s2 = __smlabt(high, even_b, s2), s3 = __smlatt(high, odd_b, s3);
  }
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}

/* The high word of a product is one instruction. `up`: of multipliers and shifts of 16 bits. */
static inline int32_t high_word_scaled(int32_t sum, const int32_t** multiplier, const uint8_t** shift, int32_t step,
                                       int32_t up) {
  const int32_t high = (int32_t)((int64_t)sum * (**multiplier << up) >> 32), right = **shift + up - 32;
  *multiplier += step, *shift += step;
  return (high + (1 << (right - 1))) >> right;
}
#define TOSAIC_SCALE(TYPE, UP)                                                                   \
  const int32_t zero_point = s->zero_point, low = s->low, high = s->high, step = s->per_channel; \
  const int32_t* multiplier = s->multipliers + step * first;                                     \
  const uint8_t* shift = s->shifts + step * first;                                               \
  for (int32_t c = 0; c < count; ++c) {                                                          \
    const int32_t sum = tosaic_add(sums[c], (int32_t)bias[first + c]);                           \
    const int32_t scaled = high_word_scaled(sum, &multiplier, &shift, step, UP) + zero_point;    \
    ((TYPE*)y)[first + c] = (TYPE)tosaic_clamp(scaled, low, high);                               \
  }
static inline void scale_s8(const tosaic_scaling* s, tosaic_way way, const int32_t* bias, const int32_t* sums,
                            int32_t first, int32_t count, void* y) {
  if (way != tosaic_high_word) {
    scale_each_s8(s, bias, sums, first, count, y);
  } else if (s->bytes == 1) {
    TOSAIC_SCALE(int8_t, 0)
  } else {
    TOSAIC_SCALE(int16_t, 0)
  }
}
static inline void scale_s16(const tosaic_scaling* s, tosaic_way way, const int64_t* bias, const int32_t* sums,
                             int32_t first, int32_t count, int16_t* y) {
  if (way != tosaic_high_word) {
    scale_each_s16(s, bias, sums, first, count, y);
  } else {
    TOSAIC_SCALE(int16_t, 16)
  }
}
#endif
