/* SPDX-License-Identifier: Apache-2.0
 * A digit is read from an image of 8x8 pixels. The board's LED blinks as often. */
#include <stdint.h>
#include <stdio.h>

#include "digits.h"

#define LEDS (*(volatile uint32_t*)0x49302000) /* of the MPS3; yours is another register */
#define BLINK_CYCLES 1000                      /* on a board: some millions */

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

static void blink(int times) {
  for (int i = 0; i < 2 * times; ++i) {
    LEDS ^= 1;
    for (volatile int wait = 0; wait < BLINK_CYCLES; ++wait) {}
  }
}

int main(void) {
  static float pixels[DIGITS_RUN_IN0_ELEMENTS], scores[DIGITS_RUN_OUT0_ELEMENTS];
  for (int i = 0; i < DIGITS_RUN_IN0_ELEMENTS; ++i) pixels[i] = (float)image[i] / 16;
  digits_run(pixels, scores);
  int best = 0;
  for (int i = 1; i < DIGITS_RUN_OUT0_ELEMENTS; ++i)
    if (scores[i] > scores[best]) best = i;
  printf("this is a %d\n", best); /* to the debugger, or QEMU; a board of its own has a serial line */
  blink(best);
  return 0;
}
