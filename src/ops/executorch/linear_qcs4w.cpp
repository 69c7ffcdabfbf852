// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/packed_weight.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() < 1) b.refuse("aten.linear_qcs4w.shape", "an input of no dims");
  Val weight = four_bit_weight(call.tensor("weight"), call.tensor("scales"), x.dtype(),
                               {.columns = x.dim(-1), .even_is_low = false, .group = x.dim(-1), .row_stride = 1});
  return b.aten(aten::op::linear, {x, weight, std::nullopt});
}
}  // namespace

AtenOp aten_linear_qcs4w() {
  return {.schemas = {"et_vk::linear_qcs4w(Tensor self, Tensor weight, Tensor scales) -> Tensor"},
          .summary = "x W^T with weights of 4 bits, a scale for each row of W (ExecuTorch's Vulkan flow)",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,16), const(u8(0,256,4,8)), const(u(0.01,0.1,4))",
                     "x(2,3,7), const(u8(0,256,3,4)), const(u(0.01,0.1,3))"}};
}
}  // namespace tosaic
