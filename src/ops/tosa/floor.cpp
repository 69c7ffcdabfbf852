// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return std::floor(x); };
}  // namespace

Op tosa_floor() {
  return said_as(aten::op::floor, bounded(unary_row("floor", 38, "each element rounded down to an integral value",
                                                    "input1", floats("in_out"), map_unary<function>),
                                          bounds::rising<function>));
}
}  // namespace tosaic::tosa
