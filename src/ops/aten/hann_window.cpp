// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/lowering/window.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder&, const Call& call) {
  return lower_window(call,
                      [](double i, double last) { return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * i / last); });
}
}  // namespace

AtenOp aten_hann_window() {
  return {.schemas = {"hann_window(int window_length, *, ScalarType? dtype=None, Layout? layout=None, Device? "
                      "device=None, bool? pin_memory=None) -> Tensor",
                      "hann_window.periodic(int window_length, bool periodic, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "a raised cosine that begins and ends with 0",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"default: 16", "default: 5, dtype=f32", "default: 1", "periodic: 9, False", "periodic: 9, True"}};
}
}  // namespace tosaic
