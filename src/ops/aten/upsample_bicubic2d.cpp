// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample_weights.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  return lower_weighted_upsample(b, call, Filter::cubic, call.schema().name == "_upsample_bicubic2d_aa");
}
}  // namespace

AtenOp aten_upsample_bicubic2d() {
  return {.schemas = {"upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
                      "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                      "scale_factors) -> Tensor",
                      "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
                      "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                      "scale_factors) -> Tensor"},
          .summary = "an image resized by cubic convolution of the sixteen pixels around each position",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"default: x(1,2,1,1), [5,7], True", "default: x(1,2,1,4), [3,8], False",
                     "_upsample_bicubic2d_aa.default: x(1,2,1,8), [3,4], False", "default: x(1,2,3,4), [6,8], False",
                     "default: x(1,2,3,4), [7,5], True", "default: x(2,2,8,9), [3,4], False",
                     "default: x(1,2,5,5), [5,9], False", "default: x(1,1,4,4), [9,9], False, 2.3, 2.3",
                     "default: x(1,1,3,3), [1,1], True", "vec: x(1,2,4,3), None, False, [2.0,1.5]",
                     "vec: x(1,2,4,3), [7,6], False, None", "_upsample_bicubic2d_aa.default: x(1,2,9,8), [4,3], False",
                     "_upsample_bicubic2d_aa.default: x(1,2,3,4), [6,5], False",
                     "_upsample_bicubic2d_aa.vec: x(1,1,14,14), None, False, [0.5,0.75]"}};
}
}  // namespace tosaic
