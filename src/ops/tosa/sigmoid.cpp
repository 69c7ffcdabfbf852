// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
}  // namespace

Op tosa_sigmoid() {
  return said_as(aten::op::sigmoid, bounded(unary_row("sigmoid", 13, "1 / (1 + exp(-x)), element by element", "input",
                                                      floats("in_out"), map_unary<function>),
                                            bounds::rising<function>));
}
}  // namespace tosaic::tosa
