// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/lowering/moments.h"
#include "ops/op.h"

namespace tosaic {
namespace {
double epsilon_of(DType t) {
  switch (t) {
    case DType::f16: return 0.0009765625;
    case DType::bf16: return 0.0078125;
    default: return std::numeric_limits<float>::epsilon();
  }
}
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const auto axes = normalised_axes(b, call, x);
  const double eps = call.has("eps") ? call.number("eps") : epsilon_of(x.dtype());
  Val rstd = calls::rsqrt(calls::add(calls::mean(calls::mul(x, x), axes, true), eps));
  Val y =
      affine(calls::mul(x, rstd), call.optional_tensor("weight"), std::nullopt, Shape(call.ints("normalized_shape")));
  if (call.schema().name == "rms_norm") return y;
  return {y, rstd};
}
}  // namespace

AtenOp aten_rms_norm() {
  return {.schemas =
              {"rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
               "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"},
          .summary = "divides by the root mean square over the trailing dims, then a weight",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,8), [8], x(8)", "x(2,6), [6], None, 1e-6", "x(2,3,4), [3,4], x(3,4), 1e-5",
                     "_fused_rms_norm.default: x(2,3,8), [8], x(8), 1e-6"}};
}
}  // namespace tosaic
