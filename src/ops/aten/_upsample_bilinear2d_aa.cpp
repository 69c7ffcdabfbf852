// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample_weights.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_weighted_upsample(b, call, Filter::linear, true); }
}  // namespace

AtenOp aten__upsample_bilinear2d_aa() {
  return {.schemas = {"_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
                      "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                      "scale_factors) -> Tensor"},
          .summary = "an image resized by weighing all pixels that a new one covers",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"default: x(1,2,9,8), [4,3], False", "default: x(1,2,3,4), [6,4], False",
                     "vec: x(1,1,14,14), None, False, [0.5,0.75]", "vec: x(1,1,7,5), [3,2], False, None"}};
}
}  // namespace tosaic
