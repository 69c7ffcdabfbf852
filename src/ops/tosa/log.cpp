// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
Bounds bounds_of_log(const View&, const BoundsOf& in) {
  const Bounds x = in(0);  // below 0 there is none
  return {std::log(std::max(x.lowest, 0.0)), std::log(std::max(x.highest, 0.0))};
}
}  // namespace

Op tosa_log() {
  return said_as(aten::op::log, bounded(unary_row("log", 39, "the natural logarithm of each element", "input1",
                                                  floats("in_out"), map_unary<[](double x) { return std::log(x); }>),
                                        bounds_of_log));
}
}  // namespace tosaic::tosa
