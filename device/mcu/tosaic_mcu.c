/* SPDX-License-Identifier: Apache-2.0 */
#include "tosaic_mcu.h"

/* TOSAIC_MCU_PLAIN: C alone, the oracle of what is written for the processor. */
#if !defined(TOSAIC_MCU_PLAIN) && defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#define TOSAIC_MCU_HELIUM 1
#elif !defined(TOSAIC_MCU_PLAIN) && defined(__ARM_FEATURE_DSP) && __ARM_FEATURE_DSP
#define TOSAIC_MCU_DSP 1
#endif

/* Which taps of a window lie inside the input, along one axis: [*first, *last). */
static inline void taps_inside(int32_t start, int32_t size, int32_t kernel, int32_t dilation, int32_t* first,
                               int32_t* last) {
  *first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const int32_t end = start >= size ? 0 : (size - start + dilation - 1) / dilation;
  *last = end < kernel ? end : kernel;
}

/* Sums of products of `count` elements: of one row of weights, and of four that lie `step` apart. */
#if TOSAIC_MCU_HELIUM
#include <arm_mve.h>
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t count) {
  int32_t sum = 0;
  for (; count >= 16; count -= 16, x += 16, w += 16) sum = vmladavaq_s8(sum, vldrbq_s8(x), vldrbq_s8(w));
  const mve_pred16_t p = vctp8q((uint32_t)count); /* what is behind the end reads as zeros */
  return count > 0 ? vmladavaq_s8(sum, vldrbq_z_s8(x, p), vldrbq_z_s8(w, p)) : sum;
}
/* In assembly: compilers make addresses anew for each load, and do not know that the loop's end masks what is too much
   (DLSTP, LETP). `count` is not 0. */
static inline void dot4_s8(int32_t sums[4], const int8_t* x, const int8_t* w, int32_t step, int32_t count) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  const int8_t *w1 = w + step, *w2 = w1 + step, *w3 = w2 + step;
  __asm volatile(
      "dlstp.8 lr, %[count]\n"
      "1:\n"
      "vldrb.8 q0, [%[x]], #16\n"
      "vldrb.8 q1, [%[w]], #16\n"
      "vmladava.s8 %[s0], q0, q1\n"
      "vldrb.8 q2, [%[w1]], #16\n"
      "vmladava.s8 %[s1], q0, q2\n"
      "vldrb.8 q1, [%[w2]], #16\n"
      "vmladava.s8 %[s2], q0, q1\n"
      "vldrb.8 q2, [%[w3]], #16\n"
      "vmladava.s8 %[s3], q0, q2\n"
      "letp lr, 1b\n"
      : [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3), [x] "+r"(x), [w] "+r"(w), [w1] "+r"(w1),
        [w2] "+r"(w2), [w3] "+r"(w3)
      : [count] "r"(count)
      : "lr", "q0", "q1", "q2", "memory", "cc");
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
/* The sum of a row of weights. */
static inline int32_t total_s8(const int8_t* w, int32_t count) {
  int32_t sum = 0;
  for (; count > 0; count -= 16, w += 16) sum = vaddvaq_s8(sum, vldrbq_z_s8(w, vctp8q((uint32_t)count)));
  return sum;
}
static inline int64_t dot_s16(const int16_t* x, const int8_t* w, int32_t count) {
  int64_t sum = 0;
  for (; count > 0; count -= 8, x += 8, w += 8) {
    const mve_pred16_t p = vctp16q((uint32_t)count);
    sum = vmlaldavaq_s16(sum, vldrhq_z_s16(x, p), vldrbq_z_s16(w, p));
  }
  return sum;
}
#elif TOSAIC_MCU_DSP
#include <arm_acle.h>
static inline uint32_t rotated(uint32_t a) { return a >> 8 | a << 24; }
static inline uint32_t word_at(const void* address) {
  uint32_t word;
  memcpy(&word, address, 4);
  return word;
}
/* Four bytes as two pairs of 16 bits: 0 and 2, 1 and 3. */
static inline int16x2_t even_bytes(uint32_t a) { return __sxtb16((int8x4_t)a); }
static inline int16x2_t odd_bytes(uint32_t a) { return __sxtb16((int8x4_t)rotated(a)); }
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t count) {
  int32_t sum = 0;
  for (; count >= 4; count -= 4, x += 4, w += 4) {
    const uint32_t a = word_at(x), b = word_at(w);
    sum = __smlad(even_bytes(a), even_bytes(b), sum);
    sum = __smlad(odd_bytes(a), odd_bytes(b), sum);
  }
  for (; count > 0; --count) sum += *x++ * *w++;
  return sum;
}
static inline void dot4_s8(int32_t sums[4], const int8_t* x, const int8_t* w, int32_t step, int32_t count) {
  int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
  for (; count >= 4; count -= 4, x += 4, w += 4) {
    const uint32_t a = word_at(x), b0 = word_at(w), b1 = word_at(w + step), b2 = word_at(w + 2 * step),
                   b3 = word_at(w + 3 * step);
    const int16x2_t even = even_bytes(a), odd = odd_bytes(a);
    s0 = __smlad(odd, odd_bytes(b0), __smlad(even, even_bytes(b0), s0));
    s1 = __smlad(odd, odd_bytes(b1), __smlad(even, even_bytes(b1), s1));
    s2 = __smlad(odd, odd_bytes(b2), __smlad(even, even_bytes(b2), s2));
    s3 = __smlad(odd, odd_bytes(b3), __smlad(even, even_bytes(b3), s3));
  }
  for (; count > 0; --count, ++x, ++w)
    s0 += *x * w[0], s1 += *x * w[step], s2 += *x * w[2 * step], s3 += *x * w[3 * step];
  sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3;
}
static inline int64_t dot_s16(const int16_t* x, const int8_t* w, int32_t count) {
  int64_t sum = 0;
  for (; count >= 4; count -= 4, x += 4, w += 4) {
    const uint32_t b = word_at(w), even = (uint32_t)even_bytes(b), odd = (uint32_t)odd_bytes(b);
    sum = __smlald((int16x2_t)word_at(x), (int16x2_t)((even & 0xffff) | (odd << 16)), sum);
    sum = __smlald((int16x2_t)word_at(x + 2), (int16x2_t)((even >> 16) | (odd & 0xffff0000u)), sum);
  }
  for (; count > 0; --count) sum += (int32_t)*x++ * *w++;
  return sum;
}
#else
static inline int32_t dot_s8(const int8_t* x, const int8_t* w, int32_t count) {
  int32_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += x[i] * w[i];
  return sum;
}
static inline void dot4_s8(int32_t sums[4], const int8_t* x, const int8_t* w, int32_t step, int32_t count) {
  for (int32_t k = 0; k < 4; ++k) sums[k] += dot_s8(x, w + k * step, count);
}
static inline int64_t dot_s16(const int16_t* x, const int8_t* w, int32_t count) {
  int64_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += (int32_t)x[i] * w[i];
  return sum;
}
#endif
#if !TOSAIC_MCU_HELIUM
static inline int32_t total_s8(const int8_t* w, int32_t count) {
  int32_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += w[i];
  return sum;
}
#endif

/* Can sums be scaled by their products' high words? (P + 2^(s-1)) >> s is ((P >> 32) + 2^(s-33)) >> (s - 32) for s
 * > 32. */
static int by_high_words(const tosaic_scaling* s, int32_t channels) {
  for (int32_t c = 0; c < (s->per_channel ? channels : 1); ++c)
    if (s->shifts[c] <= 32) return 0;
  return !s->double_round;
}
/* Up to four sums of neighbouring channels, scaled and stored. `high`: by_high_words says so. */
static inline void store4(const tosaic_scaling* s, int high, const int32_t sums[4], int32_t channel, int32_t count,
                          int8_t* y) {
#if TOSAIC_MCU_HELIUM
  if (high) {
    const mve_pred16_t some = vctp32q((uint32_t)count);
    const int32_t first = s->per_channel ? channel : 0;
    const int32x4_t multipliers =
        s->per_channel ? vldrwq_z_s32(s->multipliers + first, some) : vdupq_n_s32(s->multipliers[0]);
    const int32x4_t shifts =
        s->per_channel ? vreinterpretq_s32_u32(vldrbq_z_u32(s->shifts + first, some)) : vdupq_n_s32(s->shifts[0]);
    int32x4_t v = vrshlq_s32(vmulhq_s32(vldrwq_s32(sums), multipliers), vsubq_s32(vdupq_n_s32(32), shifts));
    v = vaddq_n_s32(v, s->zero_point);
    v = vminq_s32(vmaxq_s32(v, vdupq_n_s32(s->low)), vdupq_n_s32(s->high));
    vstrbq_p_s32(y, v, some);
    return;
  }
#else
  (void)high;
#endif
  for (int32_t k = 0; k < count; ++k) y[k] = (int8_t)tosaic_scaled(s, sums[k], channel + k);
}

static inline int32_t nibble(const uint8_t* w, int32_t i) {
  return (int8_t)(i & 1 ? w[i >> 1] : (uint8_t)(w[i >> 1] << 4)) >> 4;
}
static inline int32_t dot_s4(const int8_t* x, const uint8_t* w, int32_t first, int32_t count, int32_t zero_point) {
  int32_t sum = 0;
  for (int32_t i = 0; i < count; ++i) sum += (x[i] - zero_point) * nibble(w, first + i);
  return sum;
}

/* What a window reads: runs of elements that lie side by side, in the input and in a channel's weights. One for each
   row of taps inside the input, or one for each tap where dilation parts them. */
typedef struct {
  int32_t rows, columns, length;    /* runs, and elements of one */
  int32_t in, in_row, in_column;    /* where the first begins in the input, and how far the next ones are */
  int32_t tap, tap_row, tap_column; /* the same in the weights */
  int partial;                      /* some taps are outside */
} runs;

static inline runs runs_of(const tosaic_window* w, int32_t n, int32_t oy, int32_t ox) {
  const int32_t y = oy * w->stride_y - w->pad_top, x = ox * w->stride_x - w->pad_left, channels = w->in_channels;
  int32_t first_y, last_y, first_x, last_x;
  taps_inside(y, w->in_height, w->kernel_height, w->dilation_y, &first_y, &last_y);
  taps_inside(x, w->in_width, w->kernel_width, w->dilation_x, &first_x, &last_x);
  const int32_t rows = last_y - first_y, columns = last_x - first_x;
  runs r;
  r.partial = rows < w->kernel_height || columns < w->kernel_width;
  r.rows = rows > 0 && columns > 0 ? rows : 0;
  r.columns = w->dilation_x == 1 ? 1 : columns;
  r.length = w->dilation_x == 1 ? columns * channels : channels;
  r.in_column = w->dilation_x * channels;
  r.in_row = w->dilation_y * w->in_width * channels;
  r.in = ((n * w->in_height + y + first_y * w->dilation_y) * w->in_width + x + first_x * w->dilation_x) * channels;
  r.tap_column = channels;
  r.tap_row = w->kernel_width * channels;
  r.tap = first_y * r.tap_row + first_x * channels;
  return r;
}

#define TOSAIC_EACH_OUTPUT(w)                        \
  for (int32_t n = 0; n < (w)->batches; ++n)         \
    for (int32_t oy = 0; oy < (w)->out_height; ++oy) \
      for (int32_t ox = 0; ox < (w)->out_width; ++ox)
/* `in` and `tap`: where run (i, k) begins. */
#define TOSAIC_EACH_RUN(r, RUN)                                           \
  for (int32_t i = 0; i < (r).rows; ++i)                                  \
    for (int32_t k = 0; k < (r).columns; ++k) {                           \
      const int32_t in = (r).in + i * (r).in_row + k * (r).in_column;     \
      const int32_t tap = (r).tap + i * (r).tap_row + k * (r).tap_column; \
      RUN;                                                                \
    }

/* A window that leaves the input starts from `bias`, and takes the zero point off what it reads; all others start from
   `folded`, where that is done. */
void tosaic_conv2d_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const int8_t* weights, const int32_t* bias, const int32_t* folded, int8_t* y) {
  const int32_t row = w->kernel_height * w->kernel_width * w->in_channels;
  const int high = by_high_words(s, w->out_channels);
  TOSAIC_EACH_OUTPUT(w) {
    const runs r = runs_of(w, n, oy, ox);
    const int32_t* start = r.partial ? bias : folded;
    const int32_t zero = r.partial ? zero_point : 0;
    int32_t oc = 0;
    for (; oc + 4 <= w->out_channels; oc += 4) {
      int32_t sums[4] = {start[oc], start[oc + 1], start[oc + 2], start[oc + 3]};
      const int8_t* rows = weights + oc * row;
      TOSAIC_EACH_RUN(r, {
        dot4_s8(sums, x + in, rows + tap, row, r.length);
        for (int32_t c = 0; c < 4 && zero != 0; ++c) sums[c] -= zero * total_s8(rows + c * row + tap, r.length);
      })
      store4(s, high, sums, oc, 4, y);
      y += 4;
    }
    for (; oc < w->out_channels; ++oc) {
      int32_t sum = start[oc];
      TOSAIC_EACH_RUN(r, {
        sum += dot_s8(x + in, weights + oc * row + tap, r.length);
        if (zero != 0) sum -= zero * total_s8(weights + oc * row + tap, r.length);
      })
      *y++ = (int8_t)tosaic_scaled(s, sum, oc);
    }
  }
}

void tosaic_conv2d_s4(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const uint8_t* weights, const int32_t* bias, const int32_t* folded, int8_t* y) {
  const int32_t row = (w->kernel_height * w->kernel_width * w->in_channels + 1) / 2;
  TOSAIC_EACH_OUTPUT(w) {
    const runs r = runs_of(w, n, oy, ox);
    for (int32_t oc = 0; oc < w->out_channels; ++oc) {
      int32_t sum = r.partial ? bias[oc] : folded[oc];
      TOSAIC_EACH_RUN(r, sum += dot_s4(x + in, weights + oc * row, tap, r.length, r.partial ? zero_point : 0))
      *y++ = (int8_t)tosaic_scaled(s, sum, oc);
    }
  }
}

void tosaic_conv2d_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                       const int64_t* bias, int16_t* y) {
  const int32_t row = w->kernel_height * w->kernel_width * w->in_channels;
  TOSAIC_EACH_OUTPUT(w) {
    const runs r = runs_of(w, n, oy, ox);
    for (int32_t oc = 0; oc < w->out_channels; ++oc) {
      int64_t sum = bias[oc];
      TOSAIC_EACH_RUN(r, sum += dot_s16(x + in, weights + oc * row + tap, r.length))
      *y++ = (int16_t)tosaic_scaled48(s, sum, oc);
    }
  }
}

/* The taps of one channel are `channels` apart: a run of length `channels` for each. */
static inline int32_t taps_in_row(const tosaic_window* w, const runs* r) {
  return w->dilation_x == 1 ? r->length / w->in_channels : r->columns;
}

void tosaic_depthwise_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                         const int8_t* weights, const int32_t* bias, const int32_t* folded, int8_t* y) {
  const int32_t channels = w->in_channels;
  const int high = by_high_words(s, channels);
  TOSAIC_EACH_OUTPUT(w) {
    const runs r = runs_of(w, n, oy, ox);
    const int32_t* start = r.partial ? bias : folded;
    const int32_t zero = r.partial ? zero_point : 0, taps = taps_in_row(w, &r);
    for (int32_t c = 0; c < channels; c += 4) {
      const int32_t count = channels - c < 4 ? channels - c : 4;
      const int8_t *in_row = x + r.in + c, *tap_row = weights + r.tap + c;
      int32_t sums[4] = {0, 0, 0, 0};
#if TOSAIC_MCU_HELIUM
      const mve_pred16_t some = vctp32q((uint32_t)count);
      int32x4_t sum = vldrwq_z_s32(start + c, some);
      for (int32_t i = 0; i < r.rows; ++i, in_row += r.in_row, tap_row += r.tap_row) {
        const int8_t *in = in_row, *tap = tap_row;
        for (int32_t k = 0; k < taps; ++k, in += r.in_column, tap += channels)
          sum = vaddq_s32(sum, vmulq_s32(vsubq_n_s32(vldrbq_z_s32(in, some), zero), vldrbq_z_s32(tap, some)));
      }
      vstrwq_s32(sums, sum);
#else
      for (int32_t e = 0; e < count; ++e) sums[e] = start[c + e];
      for (int32_t i = 0; i < r.rows; ++i, in_row += r.in_row, tap_row += r.tap_row) {
        const int8_t *in = in_row, *tap = tap_row;
        for (int32_t k = 0; k < taps; ++k, in += r.in_column, tap += channels)
          for (int32_t e = 0; e < count; ++e) sums[e] += (in[e] - zero) * tap[e];
      }
#endif
      store4(s, high, sums, c, count, y);
      y += count;
    }
  }
}

void tosaic_depthwise_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                          const int64_t* bias, int16_t* y) {
  const int32_t channels = w->in_channels;
  TOSAIC_EACH_OUTPUT(w) {
    const runs r = runs_of(w, n, oy, ox);
    const int32_t taps = taps_in_row(w, &r);
    for (int32_t c = 0; c < channels; ++c) {
      int64_t sum = bias[c];
      for (int32_t i = 0; i < r.rows; ++i) {
        const int16_t* in = x + r.in + i * r.in_row + c;
        const int8_t* tap = weights + r.tap + i * r.tap_row + c;
        for (int32_t k = 0; k < taps; ++k, in += r.in_column, tap += channels) sum += (int32_t)*in * *tap;
      }
      *y++ = (int16_t)tosaic_scaled48(s, sum, c);
    }
  }
}

void tosaic_matmul_s8(const tosaic_scaling* s, int32_t batches, int32_t rows, int32_t inner, int32_t columns,
                      const int8_t* a, int32_t a_zero, const int8_t* b, int32_t b_zero, int8_t* y) {
  const int high = by_high_words(s, columns);
  for (int32_t n = 0; n < batches; ++n, b += inner * columns)
    for (int32_t h = 0; h < rows; ++h, a += inner)
      for (int32_t column = 0; column < columns; column += 4) {
        const int32_t count = columns - column < 4 ? columns - column : 4;
        const int8_t* at = b + column;
        int32_t sums[4] = {0, 0, 0, 0};
#if TOSAIC_MCU_HELIUM
        const mve_pred16_t some = vctp32q((uint32_t)count);
        int32x4_t sum = vdupq_n_s32(0);
        for (int32_t i = 0; i < inner; ++i, at += columns)
          sum = vmlaq_n_s32(sum, vsubq_n_s32(vldrbq_z_s32(at, some), b_zero), a[i] - a_zero);
        vstrwq_s32(sums, sum);
#else
        for (int32_t i = 0; i < inner; ++i, at += columns)
          for (int32_t k = 0; k < count; ++k) sums[k] += (a[i] - a_zero) * (at[k] - b_zero);
#endif
        store4(s, high, sums, column, count, y);
        y += count;
      }
}

/* A turn of a complex number by k / size of a full turn. */
static void turn(const tosaic_turns* t, int32_t k, int32_t size, float* real, float* imaginary) {
  const int32_t i = t->size / size * k;
  const float c = t->cosines[i], s = t->inverse ? t->sines[i] : -t->sines[i], r = *real;
  *real = r * c - *imaginary * s;
  *imaginary = *imaginary * c + r * s;
}

static void swap(float* a, float* b) {
  const float kept = *a;
  *a = *b;
  *b = kept;
}

/* Elements in the order of their reversed bits, then transforms of 2, 4, 8, ... neighbours. */
void tosaic_fft(const tosaic_turns* t, int32_t size, int32_t stride, float* real, float* imaginary) {
  for (int32_t i = 1, reversed = 0; i < size; ++i) {
    int32_t bit = size / 2;
    for (; reversed & bit; bit /= 2) reversed ^= bit;
    reversed ^= bit;
    if (i >= reversed) continue;
    swap(real + i * stride, real + reversed * stride);
    swap(imaginary + i * stride, imaginary + reversed * stride);
  }
  for (int32_t half = 1; half < size; half *= 2)
    for (int32_t first = 0; first < size; first += 2 * half)
      for (int32_t k = 0; k < half; ++k) {
        const int32_t a = (first + k) * stride, b = a + half * stride;
        float r = real[b], i = imaginary[b];
        turn(t, k, 2 * half, &r, &i);
        real[b] = real[a] - r, imaginary[b] = imaginary[a] - i;
        real[a] += r, imaginary[a] += i;
      }
}

/* Neighbours are taken for complex numbers z = x[2k] + i x[2k + 1]. Of their transform Z, the even elements of x have
   E = (Z[k] + conj Z[-k]) / 2 and the odd ones O = (Z[k] - conj Z[-k]) / 2i; X[k] = E + turned O. */
void tosaic_rfft(const tosaic_turns* t, int32_t size, const float* x, float* real, float* imaginary) {
  const int32_t half = size / 2;
  if (half == 0) {
    real[0] = x[0], imaginary[0] = 0;
    return;
  }
  for (int32_t k = 0; k < half; ++k) real[k] = x[2 * k], imaginary[k] = x[2 * k + 1];
  tosaic_fft(t, half, 1, real, imaginary);
  real[half] = real[0] - imaginary[0], imaginary[half] = 0;
  real[0] += imaginary[0], imaginary[0] = 0;
  for (int32_t k = 1; k <= half / 2; ++k) {
    const int32_t other = half - k;
    const float even_r = (real[k] + real[other]) / 2, even_i = (imaginary[k] - imaginary[other]) / 2;
    float odd_r = (imaginary[k] + imaginary[other]) / 2, odd_i = (real[other] - real[k]) / 2;
    turn(t, k, size, &odd_r, &odd_i);
    real[other] = even_r - odd_r, imaginary[other] = odd_i - even_i;
    real[k] = even_r + odd_r, imaginary[k] = even_i + odd_i;
  }
}
