// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return std::erf(x); };
}  // namespace

Op tosa_erf() {
  return said_as(aten::op::erf, bounded(unary_row("erf", 12, "the error function, element by element", "input",
                                                  floats("in_out"), map_unary<function>),
                                        bounds::rising<function>));
}
}  // namespace tosaic::tosa
