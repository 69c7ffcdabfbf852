// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// exp(x - max(x)) / sum(exp(x - max(x))): no exponent is positive, so nothing overflows. The safe form gives zeros
// where all of a row is -infinity; every other row adds up to at least exp(0).
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool decomposed = call.schema().name == "_softmax", safe = call.schema().name == "_safe_softmax";
  auto dtype =
      decomposed ? (call.flag("half_to_float") ? std::optional(DType::f32) : std::nullopt) : call.dtype("dtype");
  if (dtype && *dtype != x.dtype() && !x.type().quantised()) x = b.aten(aten::op::to_dtype, {x}, {{"dtype", *dtype}});
  const int axis = call.axis("dim", x.rank());
  const Shape shape = x.shape();
  if (x.rank() == 0) x = calls::view(x, {1});
  const double lowest = x.dtype() == DType::f16 ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
  Val top = calls::amax(x, {axis}, true);
  Val e = calls::exp(calls::sub(x, safe ? calls::at_least(top, lowest) : top));
  Val total = calls::sum(e, {axis}, true);
  return calls::view(calls::mul(e, calls::reciprocal(safe ? calls::at_least(total, 1.0) : total)), shape);
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "softmax" || call.out().dtype != call.in(0).dtype) return std::nullopt;
  return call.call(aten::op::_softmax, {call.operand(0)}, {{"dim", call.attr("dim")}, {"half_to_float", false}});
}
}  // namespace

AtenOp aten_softmax() {
  return {.schemas = {"softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                      "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
                      "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"},
          .summary = "positive weights along a dim that add up to 1: exp(x) / sum(exp(x))",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"int: x(2,5), 1", "int: x(2,3,4), 0", "int: x(), 0", "int: u(80,120,2,3), -1",
                     "_softmax.default: x(3,4), -1, False", "_safe_softmax.default: x(2,3), -1"},
          .core = core,
          .bounds = {{0, 1}}};
}
}  // namespace tosaic
