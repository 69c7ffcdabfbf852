/* SPDX-License-Identifier: Apache-2.0 */
#include "tosaic_mcu.h"

#include "tosaic_simd.h"

/* The sums that stand together before they are scaled: 256 bytes of stack. A multiple of TOSAIC_CHANNELS. */
#define TOSAIC_BLOCK 64
static inline int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

/* ---- products of a row of elements with rows of weights: convolutions and matrix products, whose difference is where
   the elements are from */
typedef struct {
  const tosaic_scaling* s;
  tosaic_way way;
  const void *weights, *bias;
  int32_t length, rows;
} products;
/* `x` has `count` rows of elements, one after the other. For each of them `y` gets an element for each row of weights.
 */
typedef void products_of(const products* p, const void* x, int32_t count, void* y);

static void products_s8(const products* p, const void* x, int32_t count, void* y) {
  int32_t sums[TOSAIC_BLOCK];
  const int8_t* elements = x;
  for (; count > 0; --count, elements += p->length, y = (char*)y + p->rows * p->s->bytes) {
    const int8_t* w = p->weights;
    for (int32_t first = 0; first < p->rows; first += TOSAIC_BLOCK) {
      const int32_t some = smaller(p->rows - first, TOSAIC_BLOCK), fours = some & ~3;
      dots_s8(sums, elements, w, p->length, p->length, fours);
      for (int32_t r = fours; r < some; ++r) sums[r] = dot_s8(elements, w + r * p->length, p->length);
      scale_s8(p->s, p->way, p->bias, sums, first, some, y);
      w += some * p->length;
    }
  }
}

/* Sums that 32 bits may not hold: in parts that they do. */
static void wide_products_s16(const products* p, const int16_t* x, int16_t* y) {
  const int8_t* w = p->weights;
  for (int32_t first = 0; first < p->rows; first += 4, w += 4 * p->length) {
    const int32_t count = smaller(p->rows - first, 4);
    int64_t total[4] = {0, 0, 0, 0};
    for (int32_t at = 0; at < p->length; at += TOSAIC_LENGTH_S16) {
      const int16_t* part = x + at;
      const int32_t length = smaller(p->length - at, TOSAIC_LENGTH_S16);
      int32_t sums[4] = {0, 0, 0, 0};
      if (count == 4)
        dots_s16(sums, part, w + at, p->length, length, 4);
      else
        for (int32_t r = 0; r < count; ++r) sums[r] = dot_s16(part, w + at + r * p->length, length);
      for (int32_t r = 0; r < 4; ++r) total[r] += sums[r];
    }
    for (int32_t r = first; r < first + count; ++r)
      y[r] = (int16_t)tosaic_scaled48(p->s, ((const int64_t*)p->bias)[r] + total[r - first], r);
  }
}
static void products_s16(const products* p, const void* x, int32_t count, void* y) {
  int32_t sums[TOSAIC_BLOCK];
  const int16_t* elements = x;
  int16_t* out = y;
  for (; count > 0; --count, elements += p->length, out += p->rows) {
    const int8_t* w = p->weights;
    if (p->way == tosaic_by_element) wide_products_s16(p, elements, out);
    for (int32_t first = 0; p->way != tosaic_by_element && first < p->rows; first += TOSAIC_BLOCK) {
      const int32_t some = smaller(p->rows - first, TOSAIC_BLOCK), fours = some & ~3;
      dots_s16(sums, elements, w, p->length, p->length, fours);
      for (int32_t r = fours; r < some; ++r) sums[r] = dot_s16(elements, w + r * p->length, p->length);
      scale_s16(p->s, p->way, p->bias, sums, first, some, out);
      w += some * p->length;
    }
  }
}

static inline int32_t nibble(const uint8_t* w, int32_t i) {
  return (int8_t)(i & 1 ? w[i >> 1] : (uint8_t)(w[i >> 1] << 4)) >> 4;
}
static void products_s4(const products* p, const void* x, int32_t count, void* y) {
  const int8_t* elements = x;
  for (; count > 0; --count, elements += p->length, y = (char*)y + p->rows * p->s->bytes) {
    const uint8_t* w = p->weights;
    for (int32_t r = 0; r < p->rows; ++r, w += (p->length + 1) / 2) {
      int32_t sum = ((const int32_t*)p->bias)[r];
      for (int32_t i = 0; i < p->length; ++i) sum += elements[i] * nibble(w, i);
      store(p->s, y, r, tosaic_scaled(p->s, sum, r));
    }
  }
}

/* ---- windows */

/* Which taps of a window lie inside the input, along one axis: [first, last). */
typedef struct {
  int32_t start, first, last;
} span;
static inline span taps_inside(int32_t start, int32_t size, int32_t kernel, int32_t dilation) {
  const int32_t end = start >= size ? 0 : (size - start + dilation - 1) / dilation;
  const span s = {start, start < 0 ? (-start + dilation - 1) / dilation : 0, smaller(end, kernel)};
  return s;
}
static inline span rows_inside(const tosaic_window* w, int32_t oy) {
  return taps_inside(oy * w->stride_y - w->pad_top, w->in_height, w->kernel_height, w->dilation_y);
}
static inline span columns_inside(const tosaic_window* w, int32_t ox) {
  return taps_inside(ox * w->stride_x - w->pad_left, w->in_width, w->kernel_width, w->dilation_x);
}
static inline int is_whole(const tosaic_window* w, const span* rows, const span* columns) {
  return rows->last - rows->first == w->kernel_height && columns->last - columns->first == w->kernel_width;
}
/* Where the pixel under tap (i, k) of a window begins, in channels of `bytes`. */
static inline int32_t pixel_at(const tosaic_window* w, int32_t bytes, int32_t n, const span* rows, int32_t i,
                               const span* columns, int32_t k) {
  const int32_t iy = rows->start + i * w->dilation_y, ix = columns->start + k * w->dilation_x;
  return ((n * w->in_height + iy) * w->in_width + ix) * w->in_channels * bytes;
}

/* All elements that a window reads, one after the other in `row`; those outside the input have bytes of `outside`. */
static void gather_window(const tosaic_window* w, const void* x, int32_t bytes, int outside, int32_t n,
                          const span* rows, const span* columns, char* row) {
  const int32_t pixel = w->in_channels * bytes, inside = columns->last - columns->first;
  if (!is_whole(w, rows, columns)) memset(row, outside, (size_t)(w->kernel_height * w->kernel_width * pixel));
  if (inside <= 0 || rows->first >= rows->last) return;
  const int32_t down = w->dilation_y * w->in_width * pixel;
  const char* from = (const char*)x + pixel_at(w, bytes, n, rows, rows->first, columns, columns->first);
  char* to = row + (rows->first * w->kernel_width + columns->first) * pixel;
  for (int32_t i = rows->first; i < rows->last; ++i, from += down, to += w->kernel_width * pixel) {
    if (w->dilation_x == 1) {
      copy_bytes(to, from, inside * pixel);
    } else {
      for (int32_t k = 0; k < inside; ++k) copy_bytes(to + k * pixel, from + k * w->dilation_x * pixel, pixel);
    }
  }
}

/* Windows of one tap, one for each pixel, read these where they lie. Others are gathered in `scratch`, one by one. */
static void convolve(const tosaic_window* w, const void* x, int32_t bytes, int outside, const products* p,
                     products_of* of, void* scratch, void* y) {
  const int one_tap = w->kernel_height == 1 && w->kernel_width == 1;
  if (one_tap && w->stride_y == 1 && w->stride_x == 1 && w->out_height == w->in_height && w->out_width == w->in_width) {
    of(p, x, w->batches * w->in_height * w->in_width, y);
    return;
  }
  for (int32_t n = 0; n < w->batches; ++n)
    for (int32_t oy = 0; oy < w->out_height; ++oy) {
      const span rows = rows_inside(w, oy);
      for (int32_t ox = 0; ox < w->out_width; ++ox, y = (char*)y + p->rows * p->s->bytes) {
        const span columns = columns_inside(w, ox);
        const int there = one_tap && is_whole(w, &rows, &columns);
        if (!there) gather_window(w, x, bytes, outside, n, &rows, &columns, scratch);
        of(p, there ? (const char*)x + pixel_at(w, bytes, n, &rows, 0, &columns, 0) : scratch, 1, y);
      }
    }
}

static inline products products_in(const tosaic_window* w, const tosaic_scaling* s, tosaic_way way, const void* weights,
                                   const void* bias) {
  const products p = {s, way, weights, bias, w->kernel_height * w->kernel_width * w->in_channels, w->out_channels};
  return p;
}
void tosaic_conv2d_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const int8_t* weights, const int32_t* bias, void* scratch, void* y) {
  const products p = products_in(w, s, tosaic_way_s8(s, w->out_channels), weights, bias);
  convolve(w, x, 1, zero_point, &p, products_s8, scratch, y);
}
void tosaic_conv2d_s4(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                      const uint8_t* weights, const int32_t* bias, void* scratch, void* y) {
  const products p = products_in(w, s, tosaic_by_element, weights, bias);
  convolve(w, x, 1, zero_point, &p, products_s4, scratch, y);
}
void tosaic_conv2d_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                       const int64_t* bias, void* scratch, int16_t* y) {
  const int32_t length = w->kernel_height * w->kernel_width * w->in_channels;
  const products p = products_in(w, s, tosaic_way_s16(s, w->out_channels, bias, length), weights, bias);
  convolve(w, x, 2, 0, &p, products_s16, scratch, y);
}

/* ---- depthwise: where the pixel of each tap lies; those outside the input are all one, `blank` */
static void find_taps(const tosaic_window* w, const void* x, int32_t bytes, int32_t n, const span* rows,
                      const span* columns, const void* blank, const void** taps) {
  const int32_t step = w->dilation_x * w->in_channels * bytes;
  for (int32_t i = 0; i < w->kernel_height; ++i) {
    const int inside = i >= rows->first && i < rows->last;
    int32_t at = pixel_at(w, bytes, n, rows, i, columns, 0);
    for (int32_t k = 0; k < w->kernel_width; ++k, at += step)
      *taps++ = inside && k >= columns->first && k < columns->last ? (const char*)x + at : blank;
  }
}
/* `scratch`: a pointer for each tap, then the blank pixel. */
typedef void channels_of(const products* p, const void* const* taps, void* y);

static void channels_s8(const products* p, const void* const* taps, void* y) {
  int32_t sums[TOSAIC_BLOCK];
  for (int32_t first = 0; first < p->rows; first += TOSAIC_BLOCK) {
    const int32_t count = smaller(p->rows - first, TOSAIC_BLOCK);
    for (int32_t c = 0; c < count; c += TOSAIC_CHANNELS)
      taps_s8(sums + c, (const int8_t* const*)taps, p->weights, p->length, p->rows, first + c, count - c);
    scale_s8(p->s, p->way, p->bias, sums, first, count, y);
  }
}

static void wide_channels_s16(const products* p, const void* const* taps, void* y) {
  for (int32_t c = 0; c < p->rows; c += TOSAIC_CHANNELS) {
    const int32_t count = smaller(p->rows - c, TOSAIC_CHANNELS);
    int64_t total[TOSAIC_CHANNELS] = {0};
    for (int32_t t = 0; t < p->length; t += TOSAIC_LENGTH_S16) {
      int32_t sums[TOSAIC_CHANNELS];
      taps_s16(sums, (const int16_t* const*)taps + t, (const int8_t*)p->weights + t * p->rows,
               smaller(p->length - t, TOSAIC_LENGTH_S16), p->rows, c, count);
      for (int32_t k = 0; k < count; ++k) total[k] += sums[k];
    }
    for (int32_t k = c; k < c + count; ++k)
      ((int16_t*)y)[k] = (int16_t)tosaic_scaled48(p->s, ((const int64_t*)p->bias)[k] + total[k - c], k);
  }
}
static void channels_s16(const products* p, const void* const* taps, void* y) {
  int32_t sums[TOSAIC_BLOCK];
  if (p->way == tosaic_by_element) {
    wide_channels_s16(p, taps, y);
    return;
  }
  for (int32_t first = 0; first < p->rows; first += TOSAIC_BLOCK) {
    const int32_t count = smaller(p->rows - first, TOSAIC_BLOCK);
    for (int32_t c = 0; c < count; c += TOSAIC_CHANNELS)
      taps_s16(sums + c, (const int16_t* const*)taps, p->weights, p->length, p->rows, first + c, count - c);
    scale_s16(p->s, p->way, p->bias, sums, first, count, y);
  }
}

static void convolve_depthwise(const tosaic_window* w, const tosaic_scaling* s, tosaic_way way, const void* x,
                               int32_t bytes, int outside, const void* weights, const void* bias, channels_of* of,
                               void* scratch, void* y) {
  const products p = {s, way, weights, bias, w->kernel_height * w->kernel_width, w->in_channels};
  const void** const taps = scratch;
  void* const blank = taps + p.length;
  memset(blank, outside, (size_t)(p.rows * bytes));
  for (int32_t n = 0; n < w->batches; ++n)
    for (int32_t oy = 0; oy < w->out_height; ++oy) {
      const span rows = rows_inside(w, oy);
      int whole = 0;
      for (int32_t ox = 0; ox < w->out_width; ++ox, y = (char*)y + p.rows * s->bytes) {
        const span columns = columns_inside(w, ox);
        const int next = whole;
        whole = is_whole(w, &rows, &columns);
        if (whole && next)
          for (int32_t t = 0; t < p.length; ++t) taps[t] = (const char*)taps[t] + w->stride_x * p.rows * bytes;
        else
          find_taps(w, x, bytes, n, &rows, &columns, blank, taps);
        of(&p, taps, y);
      }
    }
}
void tosaic_depthwise_s8(const tosaic_window* w, const tosaic_scaling* s, const int8_t* x, int32_t zero_point,
                         const int8_t* weights, const int32_t* bias, void* scratch, void* y) {
  convolve_depthwise(w, s, tosaic_way_s8(s, w->in_channels), x, 1, zero_point, weights, bias, channels_s8, scratch, y);
}
void tosaic_depthwise_s16(const tosaic_window* w, const tosaic_scaling* s, const int16_t* x, const int8_t* weights,
                          const int64_t* bias, void* scratch, int16_t* y) {
  const int32_t taps = w->kernel_height * w->kernel_width;
  convolve_depthwise(w, s, tosaic_way_s16(s, w->in_channels, bias, taps), x, 2, 0, weights, bias, channels_s16, scratch,
                     y);
}

/* ---- MATMUL: columns of `b` become rows of weights. sum of (a - a_zero) * (b - b_zero) is
   sum of a * b - a_zero * sum of b - b_zero * (sum of a - inner * a_zero): the second is a bias of each column, the
   third one of each row. */
void tosaic_matmul_s8(const tosaic_scaling* s, int32_t batches, int32_t rows, int32_t inner, int32_t columns,
                      const int8_t* a, int32_t a_zero, const int8_t* b, int32_t b_zero, void* scratch, void* y) {
  int32_t *const of_columns = scratch, *const bias = of_columns + columns;
  int8_t* const turned = (int8_t*)(bias + columns);
  const products p = {s, tosaic_way_s8(s, columns), turned, bias, inner, columns};
  for (int32_t n = 0; n < batches; ++n, b += inner * columns) {
    for (int32_t c = 0; c < columns; ++c) {
      for (int32_t i = 0; i < inner; ++i) turned[c * inner + i] = b[i * columns + c];
      of_columns[c] = -a_zero * total_s8(turned + c * inner, inner);
    }
    for (int32_t h = 0; h < rows; ++h, a += inner, y = (char*)y + columns * s->bytes) {
      const int32_t of_row = b_zero * (total_s8(a, inner) - inner * a_zero);
      for (int32_t c = 0; c < columns; ++c) bias[c] = of_columns[c] - of_row;
      products_s8(&p, a, 1, y);
    }
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
