/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle of lanes.c: the same, in plain C. */
#define LANES_OF_ONE
#include "lanes.c"
