// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
// The standard defines powers of non-negative finite numbers only, and not 0 to a power that is not positive.
constexpr auto allowed = [](double a, double b, int) {
  return std::isfinite(a) && std::isfinite(b) && a >= 0 && (a > 0 || b > 0);
};
}  // namespace

Op tosa_pow() {
  return said_as(aten::op::pow_Tensor_Tensor,
                 binary_row("pow", 29, "a to the power of b, with broadcasting", floats("in_out"),
                            map_binary<[](double a, double b) { return std::pow(a, b); }, Domain::floats, allowed>));
}
}  // namespace tosaic::tosa
