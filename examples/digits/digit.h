/* SPDX-License-Identifier: Apache-2.0
 * digit.npy for programs in C: an image of 8x8 pixels, in sixteenths. A 9. */
#ifndef DIGIT_H
#define DIGIT_H
#include <stdint.h>

static const uint8_t digit_image[64] = {
    0, 1, 11, 16, 11, 1,  0, 0, /* */
    0, 6, 11, 16, 16, 7,  0, 0, /* */
    0, 1, 2,  9,  16, 11, 0, 0, /* */
    0, 2, 14, 12, 16, 12, 0, 0, /* */
    0, 0, 3,  8,  4,  13, 4, 0, /* */
    0, 0, 0,  0,  0,  10, 8, 0, /* */
    0, 0, 4,  12, 16, 14, 6, 0, /* */
    0, 0, 14, 8,  4,  0,  0, 0, /* */
};

/* What the net takes. */
static inline void put_digit(float pixels[64]) {
  for (int i = 0; i < 64; ++i) pixels[i] = (float)digit_image[i] / 16;
}
/* The digit of ten scores. */
static inline int best_of(const float scores[10]) {
  int best = 0;
  for (int i = 1; i < 10; ++i)
    if (scores[i] > scores[best]) best = i;
  return best;
}

#endif
