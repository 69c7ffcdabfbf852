/* SPDX-License-Identifier: Apache-2.0
 * A digit is read from an image of 8x8 pixels. */
#include <stdint.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "digits.h"

/* In sixteenths. */
static const uint8_t image[DIGITS_RUN_IN0_ELEMENTS] = {
    0, 1, 11, 16, 11, 1,  0, 0, /* */
    0, 6, 11, 16, 16, 7,  0, 0, /* */
    0, 1, 2,  9,  16, 11, 0, 0, /* */
    0, 2, 14, 12, 16, 12, 0, 0, /* */
    0, 0, 3,  8,  4,  13, 4, 0, /* */
    0, 0, 0,  0,  0,  10, 8, 0, /* */
    0, 0, 4,  12, 16, 14, 6, 0, /* */
    0, 0, 14, 8,  4,  0,  0, 0, /* */
};

int main(void) {
  static float pixels[DIGITS_RUN_IN0_ELEMENTS], scores[DIGITS_RUN_OUT0_ELEMENTS];
  for (int i = 0; i < DIGITS_RUN_IN0_ELEMENTS; ++i) pixels[i] = (float)image[i] / 16;
  const uint32_t before = k_cycle_get_32();
  digits_run(pixels, scores);
  const uint32_t cycles = k_cycle_get_32() - before;
  int best = 0;
  for (int i = 1; i < DIGITS_RUN_OUT0_ELEMENTS; ++i)
    if (scores[i] > scores[best]) best = i;
  printk("this is a %d (%u cycles)\n", best, cycles);
  return 0;
}
