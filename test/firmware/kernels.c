/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a processor (Helium, DSP) against the same in plain C, on random shapes: all bytes are equal. Built
   for a board, and run in QEMU. */
#include <stdio.h>

#include "tosaic_mcu.h"

/* The oracle: the same file under other names. */
#define TOSAIC_MCU_PLAIN
#define tosaic_conv2d_s8 plain_conv2d_s8
#define tosaic_conv2d_s4 plain_conv2d_s4
#define tosaic_depthwise_s8 plain_depthwise_s8
#define tosaic_conv2d_s16 plain_conv2d_s16
#define tosaic_depthwise_s16 plain_depthwise_s16
#define tosaic_matmul_s8 plain_matmul_s8
#define tosaic_fft plain_fft
#define tosaic_rfft plain_rfft
#include "tosaic_mcu.c"
#undef tosaic_conv2d_s8
#undef tosaic_conv2d_s4
#undef tosaic_depthwise_s8
#undef tosaic_conv2d_s16
#undef tosaic_depthwise_s16
#undef tosaic_matmul_s8
#undef tosaic_fft
#undef tosaic_rfft

static unsigned state = 1;
static int number(int low, int high) {
  state = state * 1664525u + 1013904223u;
  return low + (int)((state >> 8) % (unsigned)(high - low + 1));
}

static int8_t x[12000], weights[45000], got[24000], wanted[24000];
static int16_t x16[12000], got16[12000], wanted16[12000];
static int32_t bias[80], multipliers[80];
static int64_t bias64[80], scratch[2500];
static uint8_t shifts[80];
static int wrong, cases;

static void compare(const char* what, const void* a, const void* b, int count, int size) {
  ++cases;
  if (memcmp(a, b, (size_t)(count * size)) == 0) return;
  if (++wrong < 5) printf("%s: case %d differs\n", what, cases);
}

/* One in five cases has shifts that the high words of products do not hold. */
static tosaic_scaling scaling(int turn) {
  for (int i = 0; i < 80; ++i) {
    multipliers[i] = number(0x40000000, 0x7fffffff);
    shifts[i] = (uint8_t)number(turn % 5 ? 33 : 28, 44);
    bias[i] = number(-20000, 20000);
    bias64[i] = turn % 6 ? bias[i] : (int64_t)bias[i] * (1 << 20); /* and more than 32 bits hold */
  }
  for (int i = 0; i < 12000; ++i) x[i] = (int8_t)number(-128, 127), x16[i] = (int16_t)number(-32768, 32767);
  for (int i = 0; i < 45000; ++i) weights[i] = (int8_t)number(-127, 127);
  const tosaic_scaling s = {
      multipliers,     shifts, (uint8_t)number(0, 1), (uint8_t)(number(0, 3) == 0), (uint8_t)number(1, 2),
      number(-20, 20), -128,   number(60, 127)};
  return s;
}

/* Few channels mostly, and at times more than are scaled at once. */
static void windows(int turn) {
  const int most = turn % 7 ? 19 : 70;
  tosaic_window w = {.batches = number(1, 2),
                     .in_height = number(1, 7),
                     .in_width = number(1, 7),
                     .in_channels = number(1, most),
                     .out_channels = number(1, most),
                     .kernel_height = number(1, 3),
                     .kernel_width = number(1, 3),
                     .stride_y = number(1, 2),
                     .stride_x = number(1, 2),
                     .dilation_y = number(1, 2),
                     .dilation_x = number(1, 2)};
  w.pad_top = number(0, w.kernel_height - 1);
  w.pad_left = number(0, w.kernel_width - 1);
  const int room_y = w.in_height + 2 * w.pad_top - (w.kernel_height - 1) * w.dilation_y - 1;
  const int room_x = w.in_width + 2 * w.pad_left - (w.kernel_width - 1) * w.dilation_x - 1;
  if (room_y < 0 || room_x < 0) return;
  w.out_height = room_y / w.stride_y + 1;
  w.out_width = room_x / w.stride_x + 1;
  tosaic_scaling s = scaling(turn);
  const int zero = number(0, 2) ? number(-128, 127) : 0, positions = w.batches * w.out_height * w.out_width;
  const int outputs = w.out_channels;
  tosaic_conv2d_s8(&w, &s, x, zero, weights, bias, scratch, got);
  plain_conv2d_s8(&w, &s, x, zero, weights, bias, scratch, wanted);
  compare("conv2d_s8", got, wanted, positions * outputs, s.bytes);
  tosaic_conv2d_s4(&w, &s, x, zero, (const uint8_t*)weights, bias, scratch, got);
  plain_conv2d_s4(&w, &s, x, zero, (const uint8_t*)weights, bias, scratch, wanted);
  compare("conv2d_s4", got, wanted, positions * outputs, s.bytes);
  w.out_channels = w.in_channels;
  tosaic_depthwise_s8(&w, &s, x, zero, weights, bias, scratch, got);
  plain_depthwise_s8(&w, &s, x, zero, weights, bias, scratch, wanted);
  compare("depthwise_s8", got, wanted, positions * w.out_channels, s.bytes);
  for (int i = 0; i < 80; ++i) multipliers[i] = number(0x4000, 0x7fff), shifts[i] = (uint8_t)number(22, 30);
  s.bytes = 2, s.low = -32768, s.high = 32767, s.zero_point = 0, s.double_round = 0;
  tosaic_depthwise_s16(&w, &s, x16, weights, bias64, scratch, got16);
  plain_depthwise_s16(&w, &s, x16, weights, bias64, scratch, wanted16);
  compare("depthwise_s16", got16, wanted16, positions * w.out_channels, 2);
  w.out_channels = outputs;
  tosaic_conv2d_s16(&w, &s, x16, weights, bias64, scratch, got16);
  plain_conv2d_s16(&w, &s, x16, weights, bias64, scratch, wanted16);
  compare("conv2d_s16", got16, wanted16, positions * outputs, 2);
}

static void matrices(int turn) {
  const int batches = number(1, 2), rows = number(1, 9), inner = number(1, 40), columns = number(1, 37);
  const tosaic_scaling s = scaling(turn);
  const int a_zero = number(-128, 127), b_zero = number(-128, 127);
  tosaic_matmul_s8(&s, batches, rows, inner, columns, x, a_zero, weights, b_zero, scratch, got);
  plain_matmul_s8(&s, batches, rows, inner, columns, x, a_zero, weights, b_zero, scratch, wanted);
  compare("matmul_s8", got, wanted, batches * rows * columns, s.bytes);
}

/* All of the largest products of 16 bits, whose sums 32 bits do not hold: these are known. */
static void long_windows(void) {
  tosaic_window w = {1, 32, 32, 9, 2, 2, 9, 31, 31, 1, 1, 1, 1, 0, 0};
  tosaic_scaling s = scaling(1);
  for (int i = 0; i < 80; ++i) multipliers[i] = 0x7fff, shifts[i] = 40;
  s.bytes = 2, s.low = -32768, s.high = 32767, s.zero_point = 0, s.double_round = 0;
  memset(weights, -128, sizeof weights);
  for (int i = 0; i < 12000; ++i) x16[i] = -32768;
  for (int depthwise = 0; depthwise < 2; ++depthwise) {
    const int outputs = w.out_channels = depthwise ? 9 : 5;
    const int64_t sum = (int64_t)31 * 31 * (depthwise ? 1 : 9) << 22;
    for (int i = 0; i < 4 * outputs; ++i)
      wanted16[i] = (int16_t)tosaic_scaled48(&s, bias64[i % outputs] + sum, i % outputs);
    (depthwise ? tosaic_depthwise_s16 : tosaic_conv2d_s16)(&w, &s, x16, weights, bias64, scratch, got16);
    compare("long windows of 16 bits", got16, wanted16, 4 * outputs, 2);
  }
}

int main(void) {
  long_windows();
  for (int turn = 0; turn < 400; ++turn) windows(turn);
  for (int turn = 0; turn < 200; ++turn) matrices(turn);
  printf("%d cases, %d differ\n", cases, wrong);
  return wrong != 0 || cases < 1000;
}
