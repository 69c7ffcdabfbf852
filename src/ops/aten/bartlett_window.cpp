// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/lowering/window.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return lower_window(call, [](double i, double last) { return 1 - std::fabs(2 * i / last - 1); });
}
}  // namespace

AtenOp aten_bartlett_window() {
  return {.schemas = {"bartlett_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
                      "bartlett_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a triangle that begins and ends with 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: 16", "periodic: 9, False", "periodic: 8, True"}};
}
}  // namespace tosaic
