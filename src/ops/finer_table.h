// SPDX-License-Identifier: Apache-2.0
// A table of 16-bit quantised values has a knot at every 128th of them, and lines in between. A function that bends
// next to 0 alone (a logarithm where a quiet signal lies, tanh of a wide range) leaves these lines there. The operand,
// scaled up such that it saturates beyond, has as many knots in that part. Where the function is flat beyond it, its
// table on them is enough; else a second table adds what the first one is missing.
#pragma once
#include "ops/builder.h"

namespace tosaic {

constexpr int finest = 128;  // a knot at each quantised value

// As Builder::table, of x with 16 bits: the knots next to 0 are `finer` times closer to each other, a power of two up
// to `finest`.
Val finer_table(Builder& b, Val x, const TensorType& to, const Builder::Function& f, int finer);

}  // namespace tosaic
