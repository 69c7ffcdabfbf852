// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/mxfp.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const mxfp::Tensor weight = mxfp::weight(call);  // [OC, KH, KW, IC]
  const Shape& shape = weight.elements.shape();
  if (shape.rank() != 4 || x.rank() != 4 || x.dim(1) != shape.size(3) || call.integer("groups") != 1)
    b.refuse("aten.mxfp.shape", fmt::format("weights of shape [{}] for an input of shape [{}] in {} groups",
                                            to_string(shape), to_string(x.shape()), call.integer("groups")));
  const std::optional<Val> bias = call.optional_tensor("bias");
  const auto stride = call.ints("stride"), padding = call.ints("padding"), dilation = call.ints("dilation");
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2)
    b.refuse("aten.mxfp.shape", "stride, padding or dilation that are not two numbers");
  const mxfp::Tensor input = mxfp::rounded(calls::permute(x, {0, 2, 3, 1}), weight.elements.dtype());
  if (!mxfp::has_operators(b))
    return b.aten(aten::op::conv2d,
                  {calls::permute(mxfp::as_floats(input), {0, 3, 1, 2}),
                   calls::permute(mxfp::as_floats(weight), {0, 3, 1, 2}), bias},
                  {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", std::int64_t{1}}});
  const Val added = bias ? *bias : b.filled(0, DType::f32, {shape.size(0)});
  const Val y = b.tosa(tosa::op::conv2d_block_scaled,
                       {input.elements, input.scales, weight.elements, weight.scales, added,
                        b.shape_constant({padding[0], padding[0], padding[1], padding[1]}), b.shape_constant(stride),
                        b.shape_constant(dilation)},
                       mxfp::block_size());
  return calls::permute(y, {0, 3, 1, 2});
}
}  // namespace

AtenOp aten_mxfp_conv2d() {
  return {
      .schemas = {"tosa_mxfp::conv2d(Tensor input, Tensor weight_qdata, Tensor weight_scale, Tensor? bias=None, int[] "
                  "stride, int[] padding, int[] dilation, SymInt groups=1, SymInt block_size=32, str "
                  "weight_payload_dtype='') -> Tensor"},
      .summary = "a convolution with input and weights rounded to block-scaled elements (ExecuTorch's to_mxfp)",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"x(1,32,5,5), const(u8(0,256,4,3,3,16)), const(u8(118,124,4,3,3,1)), const(x(4)), [2,2], [1,1], "
                 "[1,1], 1, 32, 'f4e2m1' # half=off: halves round to other elements",
                 "x(2,64,4,4), const(u8(0,120,3,1,1,64)), const(u8(110,116,3,1,1,2)), None, [1,1], [0,0], [1,1], 1, "
                 "32, 'f8e4m3' # half=off: halves round to other elements",
                 "x(1,32,6,6), const(u8(0,64,3,2,2,32)), const(u8(114,120,3,2,2,1)), const(x(3)), [1,1], [1,0], "
                 "[2,1], 1, 32, 'fp6e3m2' # half=off: halves round to other elements"}};
}
}  // namespace tosaic
