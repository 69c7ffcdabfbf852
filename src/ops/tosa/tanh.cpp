// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return std::tanh(x); };
}  // namespace

Op tosa_tanh() {
  return said_as(aten::op::tanh, bounded(unary_row("tanh", 14, "the hyperbolic tangent, element by element", "input",
                                                   floats("in_out"), map_unary<function>),
                                         bounds::rising<function>));
}
}  // namespace tosaic::tosa
