// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/lowering/creation.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Between tensors: the first half counted from the start, the second from the end.
Val between_tensors(Builder& b, const Call& call, std::int64_t steps) {
  auto p = promotion::promote(b, call, {"start", "end"});
  Val start = promotion::as_float(p.values[0]), end = promotion::as_float(p.values[1]);
  if (start.shape().elements() != 1 || end.shape().elements() != 1 || steps < 1)
    b.refuse("aten.linspace-steps", "linspace between tensors of several elements, or of no steps");
  start = b.reshape(start, {1});
  Val span = b.sub(b.reshape(end, {1}), start);
  std::vector<double> shares;
  for (std::int64_t i = 0; i < steps; ++i)
    shares.push_back(steps > 1 ? static_cast<double>(i) / static_cast<double>(steps - 1) : 0.0);
  const auto half = static_cast<std::size_t>(steps > 1 ? steps / 2 : steps);
  std::vector<double> low(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(half)), high;
  for (std::size_t i = half; i < shares.size(); ++i) high.push_back(1 - shares[i]);
  auto weights = [&](const std::vector<double>& v) {
    return b.constant({span.dtype(), Shape{static_cast<std::int64_t>(v.size())}, std::nullopt},
                      constant_bytes(span.dtype(), v));
  };
  Val y = b.add(start, b.mul(span, weights(low)));
  if (!high.empty()) y = b.concat({y, b.sub(b.reshape(end, {1}), b.mul(span, weights(high)))}, 0);
  return b.cast(y, creation::dtype_of(call, DType::f32));
}

// The second half is counted from the end, so that the end is exact.
Vals lower(Builder& b, const Call& call) {
  const std::int64_t steps = call.integer("steps");
  if (steps < 0) b.refuse("aten.linspace-steps", "linspace of a negative number of steps");
  creation::check_count(call, static_cast<double>(steps));
  if (call.overload() != "default") return between_tensors(b, call, steps);
  const double start = call.number("start"), end = call.number("end");
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
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
                      "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                      "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                      "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor"},
          .summary = "`steps` evenly spaced numbers from start to end, both included",
          .rule = Rule::index,
          .overload_rules = {{"Tensor_Tensor", Rule::float_only},
                             {"Tensor_Scalar", Rule::float_only},
                             {"Scalar_Tensor", Rule::float_only}},
          .lower = {lower},
          .domain = {"0, 1, 11", "-1.0, 1.0, 8", "3.0, 5.0, 1", "Tensor_Tensor: x(), u(2,3), 7",
                     "Tensor_Scalar: x(), 2.5, 4", "Scalar_Tensor: -1.0, x(), 1"}};
}
}  // namespace tosaic
