// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/lowering/window.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return lower_window(call, [](double i, double last) {
    const double angle = 2 * std::numbers::pi * i / last;
    return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle);
  });
}
}  // namespace

AtenOp aten_blackman_window() {
  return {.schemas = {"blackman_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
                      "blackman_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a sum of two cosines that begins and ends with 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: 16", "periodic: 9, False", "periodic: 9, True"}};
}
}  // namespace tosaic
