// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
// A shift by the width of the dtype or more, or by less than nothing, is unpredictable.
constexpr auto in_width = [](auto, auto b, int bits) { return b >= 0 && b < bits; };

Status eval(const Run& run) {
  if (!run.view.flag("round"))
    return map_binary<[](std::int64_t a, std::int64_t b) { return (a >> b); }, Domain::integers, in_width>(run);
  // Rounds half up: adds the last bit that is shifted out.
  return map_binary<[](std::int64_t a, std::int64_t b) { return (b > 0 ? (a >> b) + ((a >> (b - 1)) & 1) : a); },
                    Domain::integers, in_width>(run);
}
}  // namespace

Op tosa_arithmetic_right_shift() {
  Op op = binary_row("arithmetic_right_shift", 16, "a shifted right by b bits, copies of the sign shifted in",
                     integers("in_out", {DType::i8, DType::i16, DType::i32}) + int64s("in_out"), eval);
  op.attrs = {{"round", AttrKind::boolean}};
  op.bounds = bounds::halved;
  return op;
}
}  // namespace tosaic::tosa
