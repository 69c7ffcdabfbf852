// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/int8_operands.h"
#include "ops/lowering/packed_weight.h"

namespace tosaic {
namespace {
// Each row of x as quantised values by its own scale, and back: what the device computes with.
Val quantised_rows(Builder& b, const Call& call, Val x) {
  Val scales = b.cast(call.tensor("input_scales"), x.dtype()), zero = b.cast(call.tensor("input_zp"), x.dtype());
  const std::int64_t rows = x.shape().elements() / x.dim(-1);
  if (scales.shape().elements() != rows || zero.shape().elements() != rows)
    b.refuse("aten.linear_q4gsw.scales",
             "scales of shape " + to_string(scales.shape()) + " for an input of shape " + to_string(x.shape()));
  auto dims = x.shape().sizes();
  dims.back() = 1;
  scales = calls::view(scales, Shape(dims));
  zero = calls::view(zero, Shape(dims));
  Val quantised = calls::add(calls::unary(aten::op::round, b.aten(aten::op::div_Tensor, {x, scales})), zero);
  return calls::mul(calls::sub(calls::clamp(quantised, -128, 127), zero), scales);
}

Vals lower(Builder& b, const Call& call) {
  const bool dynamic = call.schema().name == "linear_dq8ca_q4gsw";
  Val x = call.tensor(dynamic ? "input" : "self"), packed = call.tensor("weights"),
      scales = call.tensor("weight_scales");
  if (x.rank() < 1 || scales.rank() != 2)
    b.refuse("aten.linear_q4gsw.shape",
             "an input of shape " + to_string(x.shape()) + " with scales of shape " + to_string(scales.shape()));
  Val weight = four_bit_weight(
      packed, scales, x.dtype(),
      {.columns = x.dim(-1), .group = call.integer("group_size"), .row_stride = 1, .group_stride = scales.dim(1)});
  if (dynamic) x = quantised_rows(b, call, x);
  return b.aten(aten::op::linear, {x, weight, unpadded_bias(call, packed.dim(0), x.dtype())});
}
}  // namespace

AtenOp aten_linear_q4gsw() {
  return {.schemas = {"et_vk::linear_q4gsw(Tensor self, Tensor weights, Tensor weight_scales, int group_size, Tensor? "
                      "bias=None) -> Tensor",
                      "et_vk::linear_dq8ca_q4gsw(Tensor input, Tensor input_scales, Tensor input_zp, Tensor weights, "
                      "Tensor weight_sums, Tensor weight_scales, int group_size, Tensor? bias=None) -> Tensor"},
          .summary = "x W^T + b with weights of 4 bits in groups (ExecuTorch's Vulkan flow)",
          .rule = Rule::float_only,
          .lower = {lower},
          .domain = {"x(2,16), const(u8(0,256,4,8)), const(u(0.01,0.1,2,4)), 8, const(x(4))",
                     "x(2,3,12), const(u8(0,256,4,6)), const(u(0.01,0.1,3,4)), 4",
                     "linear_dq8ca_q4gsw.default: x(3,8), const(u(0.02,0.03,3,1)), const(i8(-9,9,3,1)), "
                     "const(u8(0,256,4,4)), const(i(0,9,2,4)), const(u(0.01,0.1,2,4)), 4, const(x(4)) # half=off: "
                     "another quantised value where one in half precision lies between two"}};
}
}  // namespace tosaic
