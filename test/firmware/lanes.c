/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic in lanes against the same on one integer, on random and on extreme values. Built for a board twice, the
   second time (LANES_OF_ONE) in plain C, and run in QEMU: lanes.c has `main`, and both have `all_of`. */
#ifdef LANES_OF_ONE
#define TOSAIC_MCU_PLAIN
#define all_of all_of_one
#endif
#include <stdio.h>

#include "tosaic_lanes.h"

enum { rows = 2048 };
typedef struct {
  int32_t a[rows], b[rows];
  int16_t halves[rows];
  int8_t bytes[rows];
  int16_t table16[513];
  int8_t table8[256];
  int32_t multiplier;
  int shift;
} given;
typedef struct {
  int32_t out[16][rows];
  int16_t halves[2][rows];
  int8_t bytes[2][rows];
  int32_t one[3];
} made;

/* A row of `size` elements through every function. */
void all_of(const given* g, int size, made* m) {
  tosaic_lanes sum = tosaic_lanes_all(0), most = tosaic_lanes_all(INT32_MIN), least = tosaic_lanes_all(INT32_MAX);
  for (int32_t i = 0; i < size; i += TOSAIC_LANES) {
    const tosaic_some some = tosaic_lanes_some(size, i);
    const tosaic_lanes a = tosaic_lanes_load_s32(g->a + i, some), b = tosaic_lanes_load_s32(g->b + i, some);
    const tosaic_lanes half = tosaic_lanes_load_s16(g->halves + i, some),
                       byte = tosaic_lanes_load_s8(g->bytes + i, some);
    const tosaic_lanes results[] = {tosaic_lanes_add(a, b),
                                    tosaic_lanes_sub(a, b),
                                    tosaic_lanes_mul(a, b),
                                    tosaic_lanes_larger(a, b),
                                    tosaic_lanes_smaller(a, b),
                                    tosaic_lanes_abs(a),
                                    tosaic_lanes_plus(a, g->multiplier),
                                    tosaic_lanes_clamp(a, -g->multiplier, g->shift),
                                    tosaic_lanes_scale(a, g->multiplier, g->shift),
                                    tosaic_lanes_scale_twice(a, g->multiplier, g->shift),
                                    tosaic_lanes_scale(a, 1 << 30, g->shift),
                                    tosaic_lanes_table8(g->table8, byte),
                                    tosaic_lanes_table16(g->table16, half),
                                    tosaic_lanes_mean(half, 1 + g->shift * g->shift, 3, -100, 30000),
                                    tosaic_lanes_all(g->a[0])};
    for (unsigned k = 0; k < sizeof results / sizeof *results; ++k)
      tosaic_lanes_store_s32(m->out[k] + i, results[k], some);
    tosaic_lanes_store_s16(m->halves[0] + i, half, some);
    tosaic_lanes_store_s8(m->bytes[0] + i, byte, some);
    sum = tosaic_lanes_fold_add(sum, a, some);
    most = tosaic_lanes_fold_larger(most, a, some);
    least = tosaic_lanes_fold_smaller(least, a, some);
  }
  for (int32_t i = 0; i < rows; i += TOSAIC_LANES) { /* a size that compilers know */
    const tosaic_some some = tosaic_lanes_some(rows, i);
    tosaic_lanes_store_s16(m->halves[1] + i, tosaic_lanes_load_s16(g->halves + i, some), some);
    tosaic_lanes_store_s8(m->bytes[1] + i, tosaic_lanes_load_s8(g->bytes + i, some), some);
  }
  m->one[0] = tosaic_lanes_one_add(sum);
  m->one[1] = tosaic_lanes_one_larger(most);
  m->one[2] = tosaic_lanes_one_smaller(least);
}

#ifndef LANES_OF_ONE
void all_of_one(const given* g, int size, made* m);

static unsigned state = 1;
static int32_t bits(void) {
  state = state * 1664525u + 1013904223u;
  return (int32_t)(state >> 16);
}
static int32_t word(void) { return (int32_t)((uint32_t)bits() << 16 | (uint32_t)bits()); }
/* Small, large, and those at which rounding and overflow turn. */
static int32_t value(void) {
  static const int32_t extremes[] = {INT32_MIN, INT32_MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, INT32_MAX - 1, INT32_MAX};
  const int kind = bits() % 4;
  if (kind == 0) return extremes[bits() % 9];
  return word() >> (kind == 1 ? bits() % 31 : kind == 2 ? 16 : 0);
}

static given g;
static made vector, scalar;
int main(void) {
  int wrong = 0, cases = 0;
  for (int turn = 0; turn < 244; ++turn) {
    for (int i = 0; i < rows; ++i) {
      g.a[i] = value(), g.b[i] = value();
      if (turn % 4 == 1) g.a[i] |= INT32_MIN; /* all negative: no other lane's 0 may become the largest */
      if (turn % 4 == 2) g.a[i] = (g.a[i] & INT32_MAX) | 1;
      g.halves[i] = (int16_t)word(), g.bytes[i] = (int8_t)word();
    }
    for (int i = 0; i < 513; ++i) g.table16[i] = (int16_t)word();
    for (int i = 0; i < 256; ++i) g.table8[i] = (int8_t)word();
    g.shift = 2 + turn % 61; /* all that TOSA has */
    const int32_t multipliers[] = {1 << 30, INT32_MAX, (1 << 30) + (word() & 0x3fffffff), bits() & 0x7fff};
    g.multiplier = multipliers[turn / 61];
    const int size = turn % 3 ? rows : 1 + bits() % rows;
    memset(&vector, turn, sizeof vector);
    memset(&scalar, turn, sizeof scalar);
    all_of(&g, size, &vector);
    all_of_one(&g, size, &scalar);
    ++cases;
    if (memcmp(&vector, &scalar, sizeof vector) == 0) continue;
    for (int k = 0; k < 15; ++k)
      if (memcmp(vector.out[k], scalar.out[k], sizeof *scalar.out) != 0 && ++wrong < 9)
        printf("function %d differs: multiplier %ld, shift %d\n", k, (long)g.multiplier, g.shift);
    if (++wrong < 9) printf("case %d differs\n", turn);
  }
  printf("%d cases, %d differ\n", cases, wrong);
  return wrong != 0;
}
#endif
