// SPDX-License-Identifier: Apache-2.0
#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/mxfp.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const mxfp::Tensor weight = mxfp::weight(call);
  const Shape& shape = weight.elements.shape();
  if (shape.rank() != 3 || shape.size(0) != 1 || x.rank() < 1 || x.dim(-1) != shape.size(2))
    b.refuse("aten.mxfp.shape",
             fmt::format("weights of shape [{}] for an input of shape [{}]", to_string(shape), to_string(x.shape())));
  const std::int64_t rows = shape.size(1), columns = shape.size(2);
  const std::optional<Val> bias = call.optional_tensor("bias");
  if (!mxfp::has_operators(b)) {
    const Val floats = mxfp::as_floats(mxfp::rounded(x, weight.elements.dtype()));
    return b.aten(aten::op::linear, {floats, calls::view(mxfp::as_whole_numbers(weight), {rows, columns}), bias});
  }
  Shape result = x.shape();
  result.set(x.rank() - 1, rows);
  const mxfp::Tensor input =
      mxfp::rounded(calls::view(x, {1, x.shape().elements() / columns, columns}), weight.elements.dtype());
  const Val product = b.tosa(tosa::op::matmul_t_block_scaled,
                             {input.elements, input.scales, weight.elements, weight.scales}, mxfp::block_size());
  const Val y = calls::view(product, result);
  return bias ? calls::add(y, *bias) : y;
}
}  // namespace

AtenOp aten_mxfp_linear() {
  return {
      .schemas = {"tosa_mxfp::linear(Tensor input, Tensor weight_qdata, Tensor weight_scale, Tensor? bias=None, SymInt "
                  "block_size=32, str weight_payload_dtype='') -> Tensor",
                  // What tosaic's Python package makes of torchao's weights.
                  "tosaic::mxfp_linear(Tensor input, Tensor weight_qdata, Tensor weight_scale, Tensor? bias=None, "
                  "SymInt block_size=32, str weight_payload_dtype='') -> Tensor"},
      .summary = "x W^T + b with x and W rounded to block-scaled elements (ExecuTorch's to_mxfp)",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"mxfp_linear.default: x(2,32), const(u8(0,120,1,4,32)), const(u8(110,116,1,4,1)), const(x(4)), 32, "
                 "'f8e4m3' # half=off: halves round to other elements",
                 "x(2,64), const(u8(0,256,1,4,32)), const(u8(120,126,1,4,2)), const(x(4)), 32, 'f4e2m1' # half=off: "
                 "halves round to other elements",
                 "x(2,3,32), const(u8(0,64,1,5,32)), const(u8(120,126,1,5,1)), None, 32, 'fp6e2m3' # half=off: "
                 "halves round to other elements",
                 "u(-1e-3,1e-3,2,32), const(u8(0,64,1,5,32)), const(u8(118,124,1,5,1)), None, 32, 'fp6e3m2' # "
                 "half=off: halves round to other elements",
                 "u(-90,90,3,96), const(u8(0,120,1,4,96)), const(u8(100,106,1,4,3)), const(x(4)), 32, 'f8e4m3' # "
                 "half=off: halves round to other elements",
                 "x(3,64), const(u8(0,120,1,4,64)), const(u8(104,110,1,4,2)), None, 32, 'f8e5m2' # half=off: "
                 "halves round to other elements"}};
}
}  // namespace tosaic
