// SPDX-License-Identifier: Apache-2.0
// A table of 16-bit quantised values has a knot at every 128th of them, and lines in between. A logarithm leaves its
// line by far in the first two intervals next to 0, where a quiet signal lies. There a second table, whose knots are
// the quantised values themselves, adds what is missing.
#pragma once
#include "ops/builder.h"

namespace tosaic {

constexpr int fine_values = 254;  // on either side of 0 up to which the second table corrects the first

// As Builder::table, of x with 16 bits.
Val fine_table(Builder& b, Val x, const TensorType& to, const Builder::Function& f);

}  // namespace tosaic
