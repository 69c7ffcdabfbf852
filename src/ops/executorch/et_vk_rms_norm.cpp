// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("x"), weight = call.tensor("weight");
  if (x.rank() < 1) b.refuse("aten.et_vk_rms_norm.rank", "an input of no dims");
  return b.aten(aten::op::rms_norm, {x, weight},
                {{"normalized_shape", std::vector<std::int64_t>{x.dim(-1)}}, {"eps", call.number("eps")}});
}
}  // namespace

AtenOp aten_et_vk_rms_norm() {
  return {.schemas = {"et_vk::rms_norm(Tensor x, Tensor weight, float eps) -> Tensor"},
          .summary = "divides by the root mean square over the last dim, then a weight (ExecuTorch's Vulkan flow)",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,3,8), const(x(8)), 1e-5", "x(1,6), x(6), 1e-6"}};
}
}  // namespace tosaic
