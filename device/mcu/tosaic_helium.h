/* SPDX-License-Identifier: Apache-2.0 */
/* tosaic_simd.h for Helium. */
#ifndef TOSAIC_HELIUM_H
#define TOSAIC_HELIUM_H
#include <arm_mve.h>
#define TOSAIC_CHANNELS 16

/* In assembly: compilers make addresses anew for each load, and do not know that the loop's end masks what is too much
   (DLSTP, LETP). `length` is not 0. The loop reads whole vectors: behind it x and w3 stand that many elements further.
 */
/* clang-format off */
#define TOSAIC_DOTS(BITS, LOAD_X, LOAD_W, X_BYTES, W_BYTES, REGISTER)                                   \
  const int32_t whole = (length + W_BYTES - 1) & -W_BYTES;                                             \
  for (int32_t r = 0; r < rows; r += 4) {                                                               \
    const int8_t *w1 = w + step, *w2 = w1 + step, *w3 = w2 + step;                                      \
    int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                             \
    __asm volatile(                                                                                     \
        "dlstp." BITS " lr, %[length]\n"                                                                \
        "1:\n"                                                                                          \
        LOAD_X " q0, [%[x]], #" #X_BYTES "\n"                                                           \
        LOAD_W " q1, [%[w]], #" #W_BYTES "\n"                                                           \
        "vmladava.s" BITS " %[s0], q0, q1\n"                                                            \
        LOAD_W " q2, [%[w1]], #" #W_BYTES "\n"                                                          \
        "vmladava.s" BITS " %[s1], q0, q2\n"                                                            \
        LOAD_W " q1, [%[w2]], #" #W_BYTES "\n"                                                          \
        "vmladava.s" BITS " %[s2], q0, q1\n"                                                            \
        LOAD_W " q2, [%[w3]], #" #W_BYTES "\n"                                                          \
        "vmladava.s" BITS " %[s3], q0, q2\n"                                                            \
        "letp lr, 1b\n"                                                                                 \
        "strd %[s0], %[s1], [%[sums]], #8\n"                                                            \
        "strd %[s2], %[s3], [%[sums]], #8\n"                                                            \
        : [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3), [x] "+r"(x), [w] REGISTER(w), \
          [w1] REGISTER(w1), [w2] REGISTER(w2), [w3] REGISTER(w3), [sums] "+r"(sums)                    \
        : [length] "r"(length)                                                                          \
        : "lr", "q0", "q1", "q2", "memory", "cc");                                                      \
    x -= whole;                                                                                         \
    w = w3 + (step - whole);                                                                            \
  }
/* clang-format on */
static inline void dots_s8(int32_t* sums, const int8_t* x, const int8_t* w, int32_t step, int32_t length,
                           int32_t rows) {
  TOSAIC_DOTS("8", "vldrb.8", "vldrb.8", 16, 16, "+r")
}
static inline void dots_s16(int32_t* sums, const int16_t* x, const int8_t* w, int32_t step, int32_t length,
                            int32_t rows) {
  TOSAIC_DOTS("16", "vldrh.16", "vldrb.s16", 16, 8, "+l") /* loads that widen take low registers alone */
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
/* clang-format off */
#define TOSAIC_TAPS16(LOAD, NEXT)                                                             \
  int32_t pixel;                                                                              \
  __asm volatile(                                                                             \
      "vmov.i32 q0, #0\n"                                                                     \
      "vmov.i32 q1, #0\n"                                                                     \
      "vmov.i32 q2, #0\n"                                                                     \
      "vmov.i32 q3, #0\n"                                                                     \
      "dls lr, %[taps]\n"                                                                     \
      "1:\n"                                                                                  \
      "ldr %[pixel], [%[x]], #4\n"                                                            \
      "add %[pixel], %[offset]\n"                                                             \
      LOAD " q4, [%[pixel]]\n"                                                                \
      "vldrb.s16 q5, [%[w]]\n"                                                                \
      "vmullb.s16 q6, q4, q5\n"                                                               \
      "vmullt.s16 q7, q4, q5\n"                                                               \
      LOAD " q4, [%[pixel], #" NEXT "]\n"                                                     \
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
/* clang-format on */
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
/* clang-format off */
#define TOSAIC_SCALE(BIAS, LOADS, PRODUCT, STORE)                                                                  \
  __asm volatile(                                                                                                  \
      "dlstp.32 lr, %[count]\n"                                                                                    \
      "1:\n"                                                                                                       \
      "vldrw.32 q0, [%[sums]], #16\n"                                                                              \
      BIAS                                                                                                         \
      "vadd.i32 q0, q0, q1\n"                                                                                      \
      LOADS                                                                                                        \
      PRODUCT                                                                                                      \
      "vrshl.s32 q0, q0, %q[right]\n"                                                                              \
      "vadd.i32 q0, q0, %[zero]\n"                                                                                 \
      "vmax.s32 q0, q0, %q[low]\n"                                                                                 \
      "vmin.s32 q0, q0, %q[high]\n"                                                                                \
      STORE                                                                                                        \
      "letp lr, 1b\n"                                                                                              \
      : [sums] "+r"(sums), [bias] "+r"(bias), [multipliers] "+r"(multipliers), [shifts] "+l"(shifts), [y] "+l"(y), \
        [multiplier] "+w"(multiplier), [right] "+w"(right)                                                         \
      : [count] "r"(count), [zero] "r"(s->zero_point), [low] "w"(vdupq_n_s32(s->low)),                             \
        [high] "w"(vdupq_n_s32(s->high)), [base] "w"(vdupq_n_s32(base)), [every8] "w"(every8)                      \
      : "lr", "q0", "q1", "memory", "cc")
/* clang-format on */
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
#endif
