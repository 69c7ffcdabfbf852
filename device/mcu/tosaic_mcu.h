/* SPDX-License-Identifier: Apache-2.0 */
/* What C printed by tosaic calls: TOSA's arithmetic on one element, as inline functions, and the kernels in which
   programs spend their time. C99, no heap, no globals. Results are TOSA's (specification 1.0, "Arithmetic helpers"),
   bit for bit where they are integers. */
#ifndef TOSAIC_MCU_H
#define TOSAIC_MCU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where weights lie, and where activations: name the sections of your linker script. */
#ifndef TOSAIC_WEIGHTS
#define TOSAIC_WEIGHTS __attribute__((aligned(16)))
#endif
#ifndef TOSAIC_ARENA
#define TOSAIC_ARENA __attribute__((aligned(16)))
#endif

/* A step of a model, as it stands: GCC 12 makes one of equal functions and then takes one's arguments for the other's
   (its bug 113907). */
#if defined(__GNUC__) && !defined(__clang__)
#define TOSAIC_STEP static __attribute__((noipa))
#else
#define TOSAIC_STEP static
#endif

/* ---- integers: what does not fit wraps, as it does in the executors on the PC */
static inline int32_t tosaic_add(int32_t a, int32_t b) { return (int32_t)((uint32_t)a + (uint32_t)b); }
static inline int32_t tosaic_sub(int32_t a, int32_t b) { return (int32_t)((uint32_t)a - (uint32_t)b); }
static inline int32_t tosaic_mul(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * (uint32_t)b); }
static inline int32_t tosaic_mul_shift(int32_t a, int32_t b, int shift) {
  return (int32_t)((((int64_t)a * b >> (shift - 1)) + 1) >> 1);
}
static inline int32_t tosaic_divide(int32_t a, int32_t b) { return b == 0 ? 0 : (int32_t)((int64_t)a / b); }
static inline int64_t tosaic_add64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t tosaic_sub64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
static inline int64_t tosaic_mul64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static inline int64_t tosaic_divide64(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? tosaic_sub64(0, a) : a / b;
}
static inline int32_t tosaic_clz(int32_t a) { return a == 0 ? 32 : __builtin_clz((uint32_t)a); }
static inline int64_t tosaic_clz64(int64_t a) { return a == 0 ? 64 : __builtin_clzll((uint64_t)a); }
static inline int32_t tosaic_plus(int32_t a, int32_t constant) { return tosaic_add(a, constant); }
static inline int32_t tosaic_larger(int32_t a, int32_t b) { return a >= b ? a : b; }
static inline int32_t tosaic_smaller(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t tosaic_abs(int32_t a) { return a < 0 ? tosaic_sub(0, a) : a; }
static inline int32_t tosaic_clamp(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }
static inline int64_t tosaic_clamp64(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}
static inline int32_t tosaic_shift_right(int32_t a, int32_t b, int round) {
  return b > 0 && round ? (a >> b) + ((a >> (b - 1)) & 1) : a >> (b & 31);
}
static inline int64_t tosaic_shift_right64(int64_t a, int64_t b, int round) {
  return b > 0 && round ? (a >> b) + ((a >> (b - 1)) & 1) : a >> (b & 63);
}

/* ---- RESCALE: value * multiplier / 2^shift, rounded half up; double_round rounds at 31 bits first, away from zero */
static inline int32_t tosaic_scale(int32_t value, int32_t multiplier, int shift) {
  return (int32_t)(((int64_t)value * multiplier + ((int64_t)1 << (shift - 1))) >> shift);
}
static inline int32_t tosaic_scale_twice(int32_t value, int32_t multiplier, int shift) {
  int64_t round = (int64_t)1 << (shift - 1);
  if (shift > 31) round += value >= 0 ? (int64_t)1 << 30 : -((int64_t)1 << 30);
  return (int32_t)(((int64_t)value * multiplier + round) >> shift);
}
/* a multiplier of 16 bits, a value of up to 48 */
static inline int32_t tosaic_scale48(int64_t value, int32_t multiplier, int shift) {
  return (int32_t)(((value * multiplier >> (shift - 1)) + 1) >> 1);
}

/* AVG_POOL2D: sum / count in integers, count > 0 (specification, "Arithmetic helpers", reciprocal_scale) */
typedef struct {
  int32_t multiplier;
  int shift;
} tosaic_reciprocal;
static inline tosaic_reciprocal tosaic_reciprocal_of(int32_t count) {
  const int k = count == 1 ? 0 : 32 - __builtin_clz((uint32_t)count - 1);
  const tosaic_reciprocal r = {(int32_t)(((((int64_t)1 << 30) + 1) << k) / count), 30 + k};
  return r;
}
static inline int32_t tosaic_mean(int32_t sum, int32_t count, int32_t zero_point, int32_t low, int32_t high) {
  const tosaic_reciprocal r = tosaic_reciprocal_of(count);
  return tosaic_clamp(tosaic_scale(sum, r.multiplier, r.shift) + zero_point, low, high);
}

/* ---- TABLE: of 256 entries; of 513, with 9 bits of index and 7 of interpolation */
static inline int32_t tosaic_table8(const int8_t* table, int8_t value) { return table[value + 128]; }
static inline int32_t tosaic_table16(const int16_t* table, int16_t value) {
  const int16_t* entry = table + ((value >> 7) + 256);
  return entry[0] * 128 + (entry[1] - entry[0]) * (value & 0x7f);
}

/* ---- floats */
static inline float tosaic_maxf(float a, float b, int ignore_nan) {
  if (a != a) return ignore_nan ? b : a;
  if (b != b) return ignore_nan ? a : b;
  return a >= b ? a : b;
}
static inline float tosaic_minf(float a, float b, int ignore_nan) {
  if (a != a) return ignore_nan ? b : a;
  if (b != b) return ignore_nan ? a : b;
  return a < b ? a : b;
}
static inline float tosaic_absf(float a) { return a < 0 || a == 0 ? 0 - a : a; }
static inline float tosaic_sigmoid(float a) {
  const float e = expf(a < 0 ? a : -a);
  return (a < 0 ? e : 1) / (1 + e);
}
/* rounded to even; NaN becomes 0 */
static inline int32_t tosaic_to_integer(float a, int32_t low, int32_t high) {
  const float r = rintf(a);
  return r != r ? 0 : r <= (float)low ? low : r >= (float)high ? high : (int32_t)r;
}
static inline int64_t tosaic_to_integer64(float a) {
  const float r = rintf(a);
  return r != r ? 0 : r <= -9223372036854775808.0f ? INT64_MIN : r >= 9223372036854775808.0f ? INT64_MAX : (int64_t)r;
}

/* ---- kernels */

/* A window that slides over NHWC data. Sizes in elements. */
typedef struct {
  int32_t batches, in_height, in_width, in_channels, out_height, out_width, out_channels;
  int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
} tosaic_window;

/* How a sum becomes an element: clamp(sum * multiplier >> shift, + zero_point). One multiplier and shift, or one for
   each output channel. */
typedef struct {
  const int32_t* multipliers;
  const uint8_t* shifts;
  uint8_t per_channel, double_round;
  uint8_t bytes; /* of the element: 1 or 2 */
  int32_t zero_point, low, high;
} tosaic_scaling;

static inline int32_t tosaic_scaled(const tosaic_scaling* s, int32_t sum, int32_t channel) {
  const int32_t i = s->per_channel ? channel : 0;
  const int32_t scaled = s->double_round ? tosaic_scale_twice(sum, s->multipliers[i], s->shifts[i])
                                         : tosaic_scale(sum, s->multipliers[i], s->shifts[i]);
  return tosaic_clamp(tosaic_add(scaled, s->zero_point), s->low, s->high);
}
static inline int32_t tosaic_scaled48(const tosaic_scaling* s, int64_t sum, int32_t channel) {
  const int32_t i = s->per_channel ? channel : 0;
  return tosaic_clamp(tosaic_add(tosaic_scale48(sum, s->multipliers[i], s->shifts[i]), s->zero_point), s->low, s->high);
}

/* CONV2D and DEPTHWISE_CONV2D (channel multiplier 1) with their RESCALE. Weights: OHWI, and HWC. `zero_point` is the
   input's; `bias` has an element for each output channel, less zero_point * (sum of the channel's weights). `scratch`
   holds the elements of a window, or for DEPTHWISE_CONV2D a pointer for each tap and then the elements of a pixel; a
   window of one tap that never leaves the input needs none. `y` has elements of s->bytes. */
void tosaic_conv2d_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const int8_t* weights, const int32_t* bias, void* scratch, void* y);
/* the same with weights of 4 bits: two in a byte, the first in the low bits; each output channel begins a byte */
void tosaic_conv2d_s4(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const uint8_t* weights, const int32_t* bias, void* scratch, void* y);
void tosaic_depthwise_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                         const int8_t* weights, const int32_t* bias, void* scratch, void* y);
void tosaic_conv2d_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                       const int64_t* bias, void* scratch, int16_t* y);
void tosaic_depthwise_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                          const int64_t* bias, void* scratch, int16_t* y);
/* MATMUL with its RESCALE: y[n, h, w] = sum of (a[n, h, c] - a_zero) * (b[n, c, w] - b_zero). `scratch`: two int32_t
   for each column, then inner * columns bytes */
void tosaic_matmul_s8(const tosaic_scaling* s, int32_t batches, int32_t rows, int32_t inner, int32_t columns,
                      const int8_t* a, int32_t a_zero, const int8_t* b, int32_t b_zero, void* scratch, void* y);

/* FFT2D and RFFT2D, along one axis. cos and sin of 2 pi k / size, k < size / 2, for the longest axis. */
typedef struct {
  const float *cosines, *sines;
  int32_t size, inverse;
} tosaic_turns;

/* In place, over `size` complex numbers (a power of two) that lie `stride` apart. */
void tosaic_fft(const tosaic_turns* t, int32_t size, int32_t stride, float* real, float* imaginary);
/* Of `size` real numbers, the first size / 2 + 1 of the transform. */
void tosaic_rfft(const tosaic_turns* t, int32_t size, const float* x, float* real, float* imaginary);

#ifdef __cplusplus
}
#endif
#endif
