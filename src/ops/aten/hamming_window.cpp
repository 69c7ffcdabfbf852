// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/lowering/window.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  const double alpha = number_or(call, "alpha", 0.54), beta = number_or(call, "beta", 0.46);
  return lower_window(call,
                      [&](double i, double last) { return alpha - beta * std::cos(2 * std::numbers::pi * i / last); });
}
}  // namespace

AtenOp aten_hamming_window() {
  return {
      .schemas = {"hamming_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                  "device=None, bool? pin_memory=None) -> Tensor",
                  "hamming_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                  "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                  "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, ScalarType? "
                  "dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                  "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, "
                  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
      .summary = "a raised cosine that begins and ends above 0",
      .rule = Rule::index,
      .lower = {lower},
      .domain = {"default: 16", "periodic: 9, False", "periodic_alpha: 9, True, 0.6",
                 "periodic_alpha_beta: 8, False, 0.5, 0.4"}};
}
}  // namespace tosaic
