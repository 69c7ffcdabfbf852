/* SPDX-License-Identifier: Apache-2.0
 * A digit is read from an image of 8x8 pixels. */
#include <stdint.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "digit.h"
#include "digits.h"

int main(void) {
  static float pixels[DIGITS_RUN_IN0_ELEMENTS], scores[DIGITS_RUN_OUT0_ELEMENTS];
  put_digit(pixels);
  const uint32_t before = k_cycle_get_32();
  digits_run(pixels, scores);
  const uint32_t cycles = k_cycle_get_32() - before;
  const int best = best_of(scores);
  printk("this is a %d (%u cycles)\n", best, cycles);
  return 0;
}
