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

static int8_t x[8000], weights[20000], got[8000], wanted[8000];
static int16_t x16[8000], got16[8000], wanted16[8000];
static int32_t bias[64], folded[64], multipliers[64];
static int64_t bias64[64];
static uint8_t shifts[64];
static int wrong, cases;

static void compare(const char* what, const void* a, const void* b, int count, int size) {
  ++cases;
  if (memcmp(a, b, (size_t)(count * size)) == 0) return;
  if (++wrong < 5) printf("%s: case %d differs\n", what, cases);
}

/* One in five cases has shifts that the high words of products do not hold. */
static tosaic_scaling scaling(int turn) {
  for (int i = 0; i < 64; ++i) {
    multipliers[i] = number(0x40000000, 0x7fffffff);
    shifts[i] = (uint8_t)number(turn % 5 ? 33 : 28, 44);
    bias[i] = number(-20000, 20000);
    folded[i] = number(-20000, 20000);
    bias64[i] = bias[i];
  }
  for (int i = 0; i < 8000; ++i) x[i] = (int8_t)number(-128, 127), x16[i] = (int16_t)number(-32768, 32767);
  for (int i = 0; i < 20000; ++i) weights[i] = (int8_t)number(-127, 127);
  const tosaic_scaling s = {multipliers,     shifts, (uint8_t)number(0, 1), (uint8_t)(number(0, 3) == 0),
                            number(-20, 20), -128,   number(60, 127)};
  return s;
}

static void windows(int turn) {
  tosaic_window w = {
      number(1, 2), number(1, 7), number(1, 7), number(1, 37), 0, 0, number(1, 19), number(1, 3), number(1, 3),
      number(1, 2), number(1, 2), number(1, 2), number(1, 2),  0, 0};
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
  tosaic_conv2d_s8(&w, &s, x, zero, weights, bias, folded, got);
  plain_conv2d_s8(&w, &s, x, zero, weights, bias, folded, wanted);
  compare("conv2d_s8", got, wanted, positions * outputs, 1);
  tosaic_conv2d_s4(&w, &s, x, zero, (const uint8_t*)weights, bias, folded, got);
  plain_conv2d_s4(&w, &s, x, zero, (const uint8_t*)weights, bias, folded, wanted);
  compare("conv2d_s4", got, wanted, positions * outputs, 1);
  w.out_channels = w.in_channels;
  tosaic_depthwise_s8(&w, &s, x, zero, weights, bias, folded, got);
  plain_depthwise_s8(&w, &s, x, zero, weights, bias, folded, wanted);
  compare("depthwise_s8", got, wanted, positions * w.out_channels, 1);
  for (int i = 0; i < 64; ++i) multipliers[i] = number(0x4000, 0x7fff), shifts[i] = (uint8_t)number(22, 30);
  s.low = -32768, s.high = 32767, s.zero_point = 0, s.double_round = 0;
  tosaic_depthwise_s16(&w, &s, x16, weights, bias64, got16);
  plain_depthwise_s16(&w, &s, x16, weights, bias64, wanted16);
  compare("depthwise_s16", got16, wanted16, positions * w.out_channels, 2);
  w.out_channels = outputs;
  tosaic_conv2d_s16(&w, &s, x16, weights, bias64, got16);
  plain_conv2d_s16(&w, &s, x16, weights, bias64, wanted16);
  compare("conv2d_s16", got16, wanted16, positions * outputs, 2);
}

static void products(int turn) {
  const int batches = number(1, 2), rows = number(1, 9), inner = number(1, 40), columns = number(1, 37);
  const tosaic_scaling s = scaling(turn);
  const int a_zero = number(-128, 127), b_zero = number(-128, 127);
  tosaic_matmul_s8(&s, batches, rows, inner, columns, x, a_zero, weights, b_zero, got);
  plain_matmul_s8(&s, batches, rows, inner, columns, x, a_zero, weights, b_zero, wanted);
  compare("matmul_s8", got, wanted, batches * rows * columns, 1);
}

int main(void) {
  for (int turn = 0; turn < 400; ++turn) windows(turn);
  for (int turn = 0; turn < 200; ++turn) products(turn);
  printf("%d cases, %d differ\n", cases, wrong);
  return wrong != 0 || cases < 1000;
}
