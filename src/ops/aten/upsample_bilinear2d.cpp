// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_upsample(b, call, 2, Sampling::bilinear); }
}  // namespace

AtenOp aten_upsample_bilinear2d() {
  return {
      .schemas = {"upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                  "scales_h=None, float? scales_w=None) -> Tensor",
                  "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                  "scale_factors) -> Tensor"},
      .summary = "an image resized by weighing the four pixels around each position",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {
          "default: x(1,2,1,1), [5,7], True", "default: x(2,3,1,1), [4,4], False", "default: x(1,2,1,3), [5,6], False",
          "default: x(1,2,4,1), [8,5], True", "default: x(1,2,1,1), [3,3], False, 2.9, 2.9",
          "default: x(1,2,3,4), [6,8], False", "default: x(1,2,3,4), [7,5], True", "default: x(1,2,8,9), [3,4], False",
          "vec: x(1,2,4,3), None, False, [2.0,3.0]", "vec: x(1,2,5,5), None, False, [1.5,2.5]",
          "vec: x(1,2,4,3), [1,6], True, None",
          "default: x(1,1,40,3), [2,3], False # integer=aten.upsample_bilinear2d.scale: RESIZE does not shrink so "
          "far"}};
}
}  // namespace tosaic
