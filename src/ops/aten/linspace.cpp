// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/aten_creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The second half is counted from the end, so that the end is exact.
Vals lower(Builder& b, const Call& call) {
  const double start = call.number("start"), end = call.number("end");
  const std::int64_t steps = call.integer("steps");
  if (steps < 0) b.refuse("aten.linspace-steps", "linspace of a negative number of steps");
  creation::check_count(call, static_cast<double>(steps));
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  std::vector<double> values;
  for (std::int64_t i = 0; i < steps; ++i)
    values.push_back(i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                                 : end - step * static_cast<double>(steps - 1 - i));
  return creation::vector(call, values, creation::dtype_of(call, DType::f32));
}
}  // namespace

AtenOp aten_linspace() {
  return {.schemas = {"linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "`steps` evenly spaced numbers from start to end, both included",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"0, 1, 11", "-1.0, 1.0, 8", "3.0, 5.0, 1"}};
}
}  // namespace tosaic
