// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/packed_weight.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val packed = call.tensor("weight"), scales = call.tensor("weight_scales");
  if (packed.rank() != 2 || scales.rank() > 2)
    b.refuse("aten.embedding_q4gsw.shape",
             "a table of shape " + to_string(packed.shape()) + " with scales of shape " + to_string(scales.shape()));
  const bool each = scales.rank() == 2;
  Val table = four_bit_weight(packed, scales, each || scales.dtype() != DType::f32 ? scales.dtype() : DType::f32,
                              {.columns = packed.dim(1) * 2,
                               .even_is_low = call.flag("is_linear_weight"),
                               .group = call.integer("group_size"),
                               .row_stride = each ? scales.dim(1) : 0,
                               .group_stride = each ? std::int64_t{1} : 0});
  return b.aten(aten::op::embedding, {table, call.tensor("indices")});
}
}  // namespace

AtenOp aten_embedding_q4gsw() {
  return {
      .schemas = {"et_vk::embedding_q4gsw(Tensor weight, Tensor weight_scales, int group_size, Tensor indices, bool "
                  "is_linear_weight=False) -> Tensor"},
      .summary = "rows of a table of 4 bits in groups that indices name (ExecuTorch's Vulkan flow)",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"const(u8(0,256,7,8)), const(u(0.01,0.1,7,2)), 8, l(0,7,2,3)",
                 "const(u8(0,256,5,4)), const(u(0.01,0.1,5,2)), 4, l(0,5,4), True"}};
}
}  // namespace tosaic
