// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// With d = x - max(x): d - log(sum(exp(d))).
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool decomposed = call.schema().name == "_log_softmax";
  auto dtype =
      decomposed ? (call.flag("half_to_float") ? std::optional(DType::f32) : std::nullopt) : call.dtype("dtype");
  if (dtype && *dtype != x.dtype() && !x.type().quantised()) x = b.aten(aten::op::to_dtype, {x}, {{"dtype", *dtype}});
  const int axis = call.axis("dim", x.rank());
  const Shape shape = x.shape();
  if (x.rank() == 0) x = calls::view(x, {1});
  Val d = calls::sub(x, calls::amax(x, {axis}, true));
  return calls::view(calls::sub(d, calls::log(calls::sum(calls::exp(d), {axis}, true))), shape);
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "log_softmax" || call.out().dtype != call.in(0).dtype) return std::nullopt;
  return call.call(aten::op::_log_softmax, {call.operand(0)}, {{"dim", call.attr("dim")}, {"half_to_float", false}});
}
}  // namespace

AtenOp aten_log_softmax() {
  return {.schemas = {"log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                      "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor"},
          .summary = "the logarithm of softmax, computed without leaving the logarithm",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"int: x(2,5), 1", "int: u(80,120,2,3), -1", "_log_softmax.default: x(3,4), 0, False"},
          .core = core,
          .bounds = {{-std::numeric_limits<double>::infinity(), 0}}};
}
}  // namespace tosaic
