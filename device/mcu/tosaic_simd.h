/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of tosaic_mcu.c, for Helium, for DSP instructions, and in plain C, which is the oracle of both and
   alone with TOSAIC_MCU_PLAIN.

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
#include <arm_mve.h>
#define TOSAIC_CHANNELS 16

/* In assembly: compilers make addresses anew for each load, and do not know that the loop's end masks what is too much
   \ (DLSTP, LETP). `length` is not 0. The loop reads whole vectors: behind it x and w3 stand that many elements
   further. */
#define TOSAIC_DOT4(BITS, LOAD_X, LOAD_W, X_BYTES, W_BYTES, REGISTER)                                              \
  const int32_t whole = (length + W_BYTES - 1) / W_BYTES * W_BYTES;                                                \
  for (int32_t r = 0; r < rows; r += 4) {                                                                          \
    const int8_t *w1 = w + step, *w2 = w1 + step, *w3 = w2 + step;                                                 \
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                                        \
    __asm volatile("dlstp." BITS                                                                                   \
                   " lr, %[length]\n"                                                                              \
                   "1:\n" LOAD_X " q0, [%[x]], #" #X_BYTES "\n" LOAD_W " q1, [%[w]], #" #W_BYTES                   \
                   "\n"                                                                                            \
                   "vmladava.s" BITS " %[s0], q0, q1\n" LOAD_W " q2, [%[w1]], #" #W_BYTES                          \
                   "\n"                                                                                            \
                   "vmladava.s" BITS " %[s1], q0, q2\n" LOAD_W " q1, [%[w2]], #" #W_BYTES                          \
                   "\n"                                                                                            \
                   "vmladava.s" BITS " %[s2], q0, q1\n" LOAD_W " q2, [%[w3]], #" #W_BYTES                          \
                   "\n"                                                                                            \
                   "vmladava.s" BITS                                                                               \
                   " %[s3], q0, q2\n"                                                                              \
                   "letp lr, 1b\n"                                                                                 \
                   "strd %[s0], %[s1], [%[sums]], #8\n"                                                            \
                   "strd %[s2], %[s3], [%[sums]], #8\n"                                                            \
                   : [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3), [x] "+r"(x), [w] REGISTER(w), \
                     [w1] REGISTER(w1), [w2] REGISTER(w2), [w3] REGISTER(w3), [sums] "+r"(sums)                    \
                   : [length] "r"(length)                                                                          \
                   : "lr", "q0", "q1", "q2", "memory", "cc");                                                      \
    x -= whole;                                                                                                    \
    w = w3 + (step - whole);                                                                                       \
  }

static inline void dots_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length,
                           int32_t rows) {
  TOSAIC_DOT4("8", "vldrb.8", "vldrb.8", 16, 16, "+r")
}
static inline void dots_s16(int32_t* sums, const int16_t* x, const int8_t* w, int32_t step, int32_t length,
                            int32_t rows) {
  TOSAIC_DOT4("16", "vldrh.16", "vldrb.s16", 16, 8, "+l") /* loads that widen take low registers alone */
}
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t length) {
  int32_t sum = 0;
  for (; length > 0; length -= 16, x += 16, w += 16) {
    const mve_pred16_t some = vctp8q((uint32_t)length); /* what is behind the end reads as zeros */
    sum = vmladavaq_s8(sum, vldrbq_z_s8(x, some), vldrbq_z_s8(w, some));
  }
  return sum;
}
static inline int32_t total_s8(const int8_t* x, int32_t length) {
  int32_t sum = 0;
  for (; length > 0; length -= 16, x += 16) sum = vaddvaq_s8(sum, vldrbq_z_s8(x, vctp8q((uint32_t)length)));
  return sum;
}
static inline int32_t dot_s16(const int16_t* x, const int8_t* w, int32_t length) {
  int32_t sum = 0;
  for (; length > 0; length -= 8, x += 8, w += 8) {
    const mve_pred16_t some = vctp16q((uint32_t)length);
    sum = vmladavaq_s16(sum, vldrhq_z_s16(x, some), vldrbq_z_s16(w, some));
  }
  return sum;
}

/* Channels in lanes of 16 bits, whose products are those of even channels and those of odd ones: sixteen in assembly,
   as compilers spill sums, and fewer by eights. */
#define TOSAIC_TAPS16(LOAD, NEXT)                                                             \
  int32_t pixel;                                                                              \
  __asm volatile(                                                                             \
      "vmov.i32 q0, #0\nvmov.i32 q1, #0\nvmov.i32 q2, #0\nvmov.i32 q3, #0\n"                  \
      "dls lr, %[taps]\n"                                                                     \
      "1:\n"                                                                                  \
      "ldr %[pixel], [%[x]], #4\n"                                                            \
      "add %[pixel], %[offset]\n" LOAD                                                        \
      " q4, [%[pixel]]\n"                                                                     \
      "vldrb.s16 q5, [%[w]]\n"                                                                \
      "vmullb.s16 q6, q4, q5\n"                                                               \
      "vmullt.s16 q7, q4, q5\n" LOAD " q4, [%[pixel], #" NEXT                                 \
      "]\n"                                                                                   \
      "vadd.i32 q0, q0, q6\n"                                                                 \
      "vldrb.s16 q5, [%[w], #8]\n"                                                            \
      "vadd.i32 q1, q1, q7\n"                                                                 \
      "vmullb.s16 q6, q4, q5\n"                                                               \
      "vmullt.s16 q7, q4, q5\n"                                                               \
      "vadd.i32 q2, q2, q6\n"                                                                 \
      "vadd.i32 q3, q3, q7\n"                                                                 \
      "add %[w], %[channels]\n"                                                               \
      "le lr, 1b\n"                                                                           \
      "vst20.32 {q0, q1}, [%[sums]]\n"                                                        \
      "vst21.32 {q0, q1}, [%[sums]]!\n"                                                       \
      "vst20.32 {q2, q3}, [%[sums]]\n"                                                        \
      "vst21.32 {q2, q3}, [%[sums]]\n"                                                        \
      : [x] "+r"(x), [w] "+l"(weights), [sums] "+r"(sums), [pixel] "=&l"(pixel)               \
      : [taps] "r"(taps), [offset] "r"(first * (int32_t)sizeof **x), [channels] "r"(channels) \
      : "lr", "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "cc")
#define TOSAIC_TAPS8(LOAD)                                                                          \
  for (; count > 0; count -= 8, first += 8, weights += 8, sums += 8) {                              \
    const mve_pred16_t some = vctp16q((uint32_t)count);                                             \
    int32x4_t even = vdupq_n_s32(0), odd = even;                                                    \
    for (int32_t t = 0; t < taps; ++t) {                                                            \
      const int16x8_t a = LOAD(x[t] + first, some), b = vldrbq_z_s16(weights + t * channels, some); \
      even = vaddq_s32(even, vmullbq_int_s16(a, b));                                                \
      odd = vaddq_s32(odd, vmulltq_int_s16(a, b));                                                  \
    }                                                                                               \
    vst2q_s32(sums, ((int32x4x2_t){{even, odd}}));                                                  \
  }
static inline void taps_s8(int32_t* sums, const int8_t* const* x, const int8_t* weights, int32_t taps, int32_t channels,
                           int32_t first, int32_t count) {
  weights += first;
  if (count >= 16) {
    TOSAIC_TAPS16("vldrb.s16", "8");
  } else {
    TOSAIC_TAPS8(vldrbq_z_s16)
  }
}
static inline void taps_s16(int32_t* sums, const int16_t* const* x, const int8_t* weights, int32_t taps,
                            int32_t channels, int32_t first, int32_t count) {
  weights += first;
  if (count >= 16) {
    TOSAIC_TAPS16("vldrh.16", "16");
  } else {
    TOSAIC_TAPS8(vldrhq_z_s16)
  }
}

static inline void copy_bytes(void* to, const void* from, int32_t bytes) {
  __asm volatile(
      "wlstp.8 lr, %[bytes], 2f\n"
      "1:\n"
      "vldrb.8 q0, [%[from]], #16\n"
      "vstrb.8 q0, [%[to]], #16\n"
      "letp lr, 1b\n"
      "2:\n"
      : [to] "+r"(to), [from] "+r"(from)
      : [bytes] "r"(bytes)
      : "lr", "q0", "memory", "cc");
}
#define TOSAIC_SCALE(BIAS, LOADS, PRODUCT, STORE)                                                                  \
  __asm volatile(                                                                                                  \
      "dlstp.32 lr, %[count]\n"                                                                                    \
      "1:\n"                                                                                                       \
      "vldrw.32 q0, [%[sums]], #16\n" BIAS "vadd.i32 q0, q0, q1\n" LOADS PRODUCT                                   \
      "vrshl.s32 q0, q0, %q[right]\n"                                                                              \
      "vadd.i32 q0, q0, %[zero]\n"                                                                                 \
      "vmax.s32 q0, q0, %q[low]\n"                                                                                 \
      "vmin.s32 q0, q0, %q[high]\n" STORE "letp lr, 1b\n"                                                          \
      : [sums] "+r"(sums), [bias] "+r"(bias), [multipliers] "+r"(multipliers), [shifts] "+l"(shifts), [y] "+l"(y), \
        [multiplier] "+w"(multiplier), [right] "+w"(right)                                                         \
      : [count] "r"(count), [zero] "r"(s->zero_point), [low] "w"(vdupq_n_s32(s->low)),                             \
        [high] "w"(vdupq_n_s32(s->high)), [base] "w"(vdupq_n_s32(base)), [every8] "w"(every8)                      \
      : "lr", "q0", "q1", "memory", "cc")
#define TOSAIC_MULTIPLIERS "vldrw.32 %q[multiplier], [%[multipliers]], #16\n"
#define TOSAIC_SHIFTS "vldrb.u32 %q[right], [%[shifts]], #4\nvsub.i32 %q[right], %q[base], %q[right]\n"
#define TOSAIC_HIGH_WORD "vmulh.s32 q0, q0, %q[multiplier]\n"
/* VQRDMULH is (P + 2^30) >> 31: of a negative sum, 1 more than D */
#define TOSAIC_DOUBLED "vshr.s32 q1, q0, #31\nvqrdmulh.s32 q0, q0, %q[multiplier]\nvadd.i32 q0, q0, q1\n"
#define TOSAIC_BIAS32 "vldrw.32 q1, [%[bias]], #16\n"
#define TOSAIC_BIAS64 "vldrw.u32 q1, [%[bias], %q[every8]]\nadd %[bias], #32\n" /* the low words */
#define TOSAIC_SCALE_S8(PRODUCT, STORE)                                            \
  if (s->per_channel)                                                              \
    TOSAIC_SCALE(TOSAIC_BIAS32, TOSAIC_MULTIPLIERS TOSAIC_SHIFTS, PRODUCT, STORE); \
  else                                                                             \
    TOSAIC_SCALE(TOSAIC_BIAS32, "", PRODUCT, STORE)
#define TOSAIC_STORE8 "vstrb.32 q0, [%[y]], #4\n"
#define TOSAIC_STORE16 "vstrh.32 q0, [%[y]], #8\n"
static inline void scale_s8(const tosaic_scaling* s, tosaic_way way, const int32_t* bias, const int32_t* sums,
                            int32_t first, int32_t count, void* y) {
  if (way == tosaic_by_element) {
    scale_each_s8(s, bias, sums, first, count, y);
    return;
  }
  const int32_t base = way == tosaic_high_word ? 32 : 31, at = s->per_channel ? first : 0;
  const int32_t* multipliers = s->multipliers + at;
  const uint8_t* shifts = s->shifts + at;
  int32x4_t multiplier = vdupq_n_s32(*multipliers), right = vdupq_n_s32(base - *shifts), every8 = right;
  bias += first;
  y = (char*)y + first * s->bytes;
  if (way == tosaic_high_word && s->bytes == 1) {
    TOSAIC_SCALE_S8(TOSAIC_HIGH_WORD, TOSAIC_STORE8);
  } else if (way == tosaic_high_word) {
    TOSAIC_SCALE_S8(TOSAIC_HIGH_WORD, TOSAIC_STORE16);
  } else if (s->bytes == 1) {
    TOSAIC_SCALE_S8(TOSAIC_DOUBLED, TOSAIC_STORE8);
  } else {
    TOSAIC_SCALE_S8(TOSAIC_DOUBLED, TOSAIC_STORE16);
  }
}
static inline void scale_s16(const tosaic_scaling* s, tosaic_way way, const int64_t* bias, const int32_t* sums,
                             int32_t first, int32_t count, int16_t* y) {
  if (way == tosaic_by_element) {
    scale_each_s16(s, bias, sums, first, count, y);
    return;
  }
  const int32_t base = 32 - 16, at = s->per_channel ? first : 0;
  const int32_t* multipliers = s->multipliers + at;
  const uint8_t* shifts = s->shifts + at;
  int32x4_t multiplier = vdupq_n_s32(*multipliers << 16), right = vdupq_n_s32(base - *shifts);
  const int32x4_t every8 = vreinterpretq_s32_u32(vidupq_n_u32(0, 8));
  bias += first;
  y += first;
  if (s->per_channel)
    TOSAIC_SCALE(TOSAIC_BIAS64, TOSAIC_MULTIPLIERS "vshl.i32 %q[multiplier], %q[multiplier], #16\n" TOSAIC_SHIFTS,
                 TOSAIC_HIGH_WORD, TOSAIC_STORE16);
  else
    TOSAIC_SCALE(TOSAIC_BIAS64, "", TOSAIC_HIGH_WORD, TOSAIC_STORE16);
}

#elif TOSAIC_MCU_DSP
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
#define TOSAIC_ROW(LOAD, SUM)             \
  "ldr %[b], " LOAD                       \
  "\n"                                    \
  "sxtb16 %[pair], %[b]\n"                \
  "sxtb16 %[b], %[b], ror #8\n"           \
  "smlad " SUM ", %[even], %[pair], " SUM \
  "\n"                                    \
  "smlad " SUM ", %[odd], %[b], " SUM "\n"
static inline void dot4_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length) {
  int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0, fours = length >> 2, even, odd, pair, b;
  const int8_t* w2 = w + 2 * step;
  if (fours > 0)
    __asm volatile("1:\n"
                   "ldr %[odd], [%[x]], #4\n"
                   "sxtb16 %[even], %[odd]\n"
                   "sxtb16 %[odd], %[odd], ror #8\n"
                   TOSAIC_ROW("[%[w], %[step]]", "%[s1]")
                   TOSAIC_ROW("[%[w]], #4", "%[s0]")
                   TOSAIC_ROW("[%[w2], %[step]]", "%[s3]")
                   TOSAIC_ROW("[%[w2]], #4", "%[s2]")
                   "subs %[fours], %[fours], #1\n"
                   "bne 1b\n"
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [x] "+r"(x), [w] "+r"(w),
                     [w2] "+r"(w2), [fours] "+r"(fours), [even] "=&r"(even), [odd] "=&r"(odd), [pair] "=&r"(pair),
                     [b] "=&r"(b)
                   : [step] "r"(step)
                   : "memory", "cc");
  for (length &= 3; length > 0; --length, ++x, ++w, ++w2)
    s0 += *x * w[0], s1 += *x * w[step], s2 += *x * w2[0], s3 += *x * w2[step];
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
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
#if !TOSAIC_MCU_HELIUM && !TOSAIC_MCU_DSP
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
#endif
