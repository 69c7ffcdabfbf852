// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/lowering/window.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The modified Bessel function of the first kind and order 0, by its series: every term is positive.
double bessel(double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 1000 && term > sum * 1e-17; ++k) sum += term *= x * x / (4.0 * k * k);
  return sum;
}
Vals lower(Builder&, const Call& call) {
  const double beta = number_or(call, "beta", 12.0);
  return lower_window(call, [&](double i, double last) {
    const double t = 2 * i / last - 1;
    return bessel(beta * std::sqrt(std::fmax(0.0, 1 - t * t))) / bessel(beta);
  });
}
}  // namespace

AtenOp aten_kaiser_window() {
  return {.schemas = {"kaiser_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
                      "kaiser_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                      "kaiser_window.beta(int window_length, bool periodic, float beta, *, ScalarType? dtype=None, "
                      "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a window of Bessel's function, of the steepness `beta`",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: 16", "periodic: 9, False", "beta: 9, True, 5.0"}};
}
}  // namespace tosaic
