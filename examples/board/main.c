/* SPDX-License-Identifier: Apache-2.0
 * A digit is read from an image of 8x8 pixels. The board's LED blinks as often. */
#include <stdint.h>
#include <stdio.h>

#include "../digits/digit.h"
#include "digits.h"

#define LEDS (*(volatile uint32_t*)0x49302000) /* of the MPS3; yours is another register */
#define BLINK_CYCLES 1000                      /* on a board: some millions */

static void blink(int times) {
  for (int i = 0; i < 2 * times; ++i) {
    LEDS ^= 1;
    for (volatile int wait = 0; wait < BLINK_CYCLES; ++wait) {}
  }
}

int main(void) {
  static float pixels[DIGITS_RUN_IN0_ELEMENTS], scores[DIGITS_RUN_OUT0_ELEMENTS];
  put_digit(pixels);
  digits_run(pixels, scores);
  const int best = best_of(scores);
  printf("this is a %d\n", best); /* to the debugger, or QEMU; a board of its own has a serial line */
  blink(best);
  return 0;
}
