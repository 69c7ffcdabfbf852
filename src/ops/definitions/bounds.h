// SPDX-License-Identifier: Apache-2.0
// What rows say of the numbers that their results lie between (Op::bounds). Of integers below 2^53, doubles are exact.
// Private to src/ops.
#pragma once
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa::bounds {

using In = BoundsOf;

Bounds first(const View& view, const In& in);           // elements of the first operand
Bounds first_or_third(const View& view, const In& in);  // PAD, SCATTER
Bounds second_or_third(const View& view, const In& in);
Bounds any(const View& view, const In& in);   // elements of any operand
Bounds mean(const View& view, const In& in);  // AVG_POOL2D
Bounds sum(const View& view, const In& in);
Bounds difference(const View& view, const In& in);
Bounds product(const View& view, const In& in);        // MUL
Bounds inner_product(const View& view, const In& in);  // MATMUL, MATMUL_T: of rows of A [N, H, C]
Bounds negative(const View& view, const In& in);
Bounds magnitude(const View& view, const In& in);
Bounds larger(const View& view, const In& in);
Bounds smaller(const View& view, const In& in);
Bounds along_axis(const View& view, const In& in);  // the sum of the elements along the attribute `axis`
Bounds index(const View& view, const In& in);       // of an element along the attribute `axis`
Bounds quotient(const View& view, const In& in);
Bounds bits(const View& view, const In& in);           // AND, OR, XOR
Bounds inverted_bits(const View& view, const In& in);  // BITWISE_NOT
Bounds shifted_right(const View& view, const In& in);
Bounds halved(const View& view, const In& in);       // ARITHMETIC_RIGHT_SHIFT
Bounds doubled(const View& view, const In& in);      // LOGICAL_LEFT_SHIFT: of what it is by a known number of bits
Bounds converted(const View& view, const In& in);    // CAST
Bounds clamped(const View& view, const In& in);      // CLAMP
Bounds zero_or_one(const View& view, const In& in);  // 0 or 1
Bounds wave(const View& view, const In& in);         // -1 to 1
Bounds not_negative(const View& view, const In& in);
Bounds inverse(const View& view, const In& in);  // 1/x: of the operand's sign

// f(x), where f never falls.
template <auto f>
Bounds rising(const View&, const In& in) {
  const Bounds x = in(0);
  return {f(x.lowest), f(x.highest)};
}

// Around both.
Bounds hull(const Bounds& a, const Bounds& b);
// Of a number's magnitude, and of the operand `i` less its zero point, operand `zero`.
double magnitude(const Bounds& bounds);
Bounds centred(const In& in, std::size_t i, std::size_t zero);

}  // namespace tosaic::tosa::bounds

namespace tosaic::tosa {
// The row, with its bounds.
Op bounded(Op op, Bounds (*bounds)(const View&, const BoundsOf&));
// The same of a row that looks at elements and chooses among them (Moves::compared).
Op choosing(Op op, Bounds (*bounds)(const View&, const BoundsOf&));
}  // namespace tosaic::tosa
