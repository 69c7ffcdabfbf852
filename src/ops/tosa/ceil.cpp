// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
constexpr auto function = [](double x) { return std::ceil(x); };
}  // namespace

Op tosa_ceil() {
  return said_as(aten::op::ceil, bounded(unary_row("ceil", 34, "each element rounded up to an integral value", "input1",
                                                   floats("in_out"), map_unary<function>),
                                         bounds::rising<function>));
}
}  // namespace tosaic::tosa
