// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  auto number = [&](std::string_view name, double otherwise) {
    return call.schema().argument(name) ? call.number(name) : otherwise;
  };
  const double start = number("start", 0), end = call.number("end"), step = number("step", 1);
  if (step == 0 || !((end - start) / step >= 0))
    b.refuse("aten.arange-step", "arange never reaches its end with this step");
  creation::check_count(call, (end - start) / step);
  bool is_float = false, wide = false;
  for (auto name : {"start", "end", "step"})
    if (call.schema().argument(name)) {
      is_float |= call.is_float_scalar(name);
      wide |= std::fabs(call.number(name)) > INT32_MAX;
    }
  std::vector<double> values(static_cast<std::size_t>(std::ceil((end - start) / step)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + static_cast<double>(i) * step;
  return creation::vector(call, values,
                          creation::dtype_of(call, is_float ? DType::f32
                                                   : wide   ? DType::i64
                                                            : DType::i32));
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.overload != "start") return std::nullopt;
  Attrs attrs = call.node.attrs;
  attrs.set("step", std::int64_t{1});
  return call.call(aten::op::arange_start_step, call.node.inputs, std::move(attrs));
}
}  // namespace

AtenOp aten_arange() {
  return {.schemas = {"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
                      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                      "arange.start(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None) -> Tensor",
                      "arange(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
                      "pin_memory=None) -> Tensor"},
          .summary = "start, start + step, ... below end",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"2, 11, 3", "0.5, 4.0, 0.25", "5, -3, -2", "0, 10, 1, dtype=f32", "start: 2, 7", "start: 0.5, 4",
                     "default: 6", "default: 4.5", "default: 6, dtype=f32"},
          .core = core,
          .out_overloads = {{"arange.start_step", "start_out"}}};
}
}  // namespace tosaic
