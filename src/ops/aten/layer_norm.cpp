// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  Normalised n = normalised(x, normalised_axes(b, call, x), call.number("eps"));
  Val y =
      affine(n.y, call.optional_tensor("weight"), call.optional_tensor("bias"), Shape(call.ints("normalized_shape")));
  if (call.schema().name == "layer_norm") return y;
  return {y, n.mean, n.rstd};
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "layer_norm") return std::nullopt;
  Node made = call.call(aten::op::native_layer_norm, {call.operand(0), call.operand(1), call.operand(2)},
                        {{"normalized_shape", call.attr("normalized_shape")}, {"eps", call.attr("eps")}});
  Shape kept = call.out().shape;
  const auto normalised = static_cast<int>(call.ints("normalized_shape", 1).size());
  for (int i = std::max(0, kept.rank() - normalised); i < kept.rank(); ++i) kept.set(i, 1);
  call.add_result(made, call.out().dtype, kept);
  call.add_result(made, call.out().dtype, kept);
  return made;
}
}  // namespace

AtenOp aten_layer_norm() {
  return {
      .schemas = {"layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
                  "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
                  "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
                  "-> (Tensor, Tensor, Tensor)"},
      .summary = "zero mean and unit variance over the trailing dims, then a weight and a bias",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(2,3,8), [8], x(8), x(8)", "x(2,3,4), [3,4], x(3,4), None", "x(2,6), [6]",
                 "u(100,101,2,16), [16] # rtol=1e-4 atol=1e-4 half=off: the inputs differ by little against their size",
                 "native_layer_norm.default: x(2,3,8), [8], x(8), x(8), 1e-5"},
      .core = core};
}
}  // namespace tosaic
