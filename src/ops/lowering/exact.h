// SPDX-License-Identifier: Apache-2.0
// Quotients, roots, logarithms and powers as the nearest float, of nothing but TOSA's sums and products. The plain
// forms (x * (1 / y), 1 / (1 / sqrt(x)), log(x) * log2(e)) are off by a bit or two, which shows where a whole number is
// looked for: floor(x / y), sqrt(x) == k. They are mended only there: normalise/seen_rounding.cpp says where.
#pragma once
#include <functional>

#include "ops/builder.h"

namespace tosaic::functions {

// Is x a constant, and does it hold of all its elements?
bool known(Val x, const std::function<bool(double)>& holds);

// a * b = high + low without any rounding, unless the product overflows or is tiny.
struct Product {
  Val high, low;
};
Product exact_product(Val a, Val b);

// Does a product with the reciprocal give the nearest quotient? By powers of 2.
bool divides_exactly(Val d);
// a / d. Nearest: the plain quotient is corrected by what it leaves of a, which is exact.
Val plain_quotient(Val a, Val d);
Val nearest_quotient(Val a, Val d);
// One of the two, as the call being lowered needs it (Builder::exact).
Val quotient(Val a, Val d);

Val nearest_square_root(Val x);
// 1 / sqrt(x), as the call being lowered needs it.
Val inverse_square_root(Val x);
// The logarithm to a whole `base`, of which `plain` is one to a few bits: powers of the base have whole ones.
Val nearest_logarithm(Val x, double base, Val plain);
// a^y, of which `plain` is one to a few bits: a product where y is whole, so that those of whole numbers are whole.
Val nearest_power(Val a, Val y, Val plain);

}  // namespace tosaic::functions
