// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return std::exp(x); };
}  // namespace

Op tosa_exp() {
  return said_as(aten::op::exp, bounded(unary_row("exp", 37, "e to the power of each element", "input1",
                                                  floats("in_out"), map_unary<function>),
                                        bounds::rising<function>));
}
}  // namespace tosaic::tosa
