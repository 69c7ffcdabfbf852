// SPDX-License-Identifier: Apache-2.0
// Whole numbers of a tensor of floats, or of one of quantised values of 32 bits whose unit (its scale) is a power of
// two: those have shifts for them, which every target has.
#pragma once
#include "ops/builder.h"

namespace tosaic::functions {

Val floor(Val x);
Val ceil(Val x);
Val truncated(Val x);
Val round_half_even(Val x);

// Of quantised values the above are in units of 1. The same numbers in units of `x`, which they were taken of.
Val in_units_of(Val x, Val whole);
// Quantised values in units of a power of two, of which no finer ones are lost.
Val in_binary_units(Val x);

}  // namespace tosaic::functions
