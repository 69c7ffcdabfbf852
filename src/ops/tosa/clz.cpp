// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
template <class Unsigned>
std::int64_t leading_zeros(std::int64_t x) {
  return std::countl_zero(static_cast<Unsigned>(x));
}
Status eval(const Run& run) {
  if (run.out[0].type.dtype == DType::i64) return map_unary<leading_zeros<std::uint64_t>, Domain::integers>(run);
  return map_unary<leading_zeros<std::uint32_t>, Domain::integers>(run);
}
}  // namespace

Op tosa_clz() {
  return unary_row("clz", 35, "the number of leading zero bits of each element", "input1",
                   integers("in_out", {DType::i32}) + int64s("in_out"), eval);
}
}  // namespace tosaic::tosa
