// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
// A shift by the width of the dtype or more, or by less than nothing, is unpredictable.
constexpr auto in_width = [](auto, auto b, int bits) { return b >= 0 && b < bits; };
}  // namespace

Op tosa_logical_left_shift() {
  Op op = binary_row("logical_left_shift", 22, "a shifted left by b bits, zeros shifted in",
                     either("in_out", {DType::i8, DType::i16, DType::i32}) + int64s("in_out"),
                     map_binary<[](std::int64_t a, std::int64_t b, int bits) {
                       return wrapped(static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << b), bits);
                     },
                                Domain::integers, in_width>);
  op.bounds = bounds::doubled;
  return op;
}
}  // namespace tosaic::tosa
