// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const bool exact = call.schema().name == "_upsample_nearest_exact2d";
  return lower_upsample(b, call, 2, exact ? Sampling::nearest_exact : Sampling::nearest);
}
}  // namespace

AtenOp aten_upsample_nearest2d() {
  return {.schemas =
              {"upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> "
               "Tensor",
               "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
               "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
               "scales_w=None) -> Tensor",
               "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
          .summary = "an image resized by taking the pixel at or before each position",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(1,2,1,1), [32,32]", "default: x(1,2,1,3), [5,6]", "default: x(1,2,3,4), [6,8]",
                     "default: x(1,2,5,7), [3,16]", "vec: x(1,2,4,3), None, [2.0,3.0]",
                     "vec: x(1,2,5,5), None, [1.5,2.5]", "vec: x(1,2,4,3), [7,7], None", "default: x(1,1,64,3), [2,3]",
                     "_upsample_nearest_exact2d.default: x(1,2,5,7), [3,16]",
                     "_upsample_nearest_exact2d.vec: x(1,2,4,3), None, [2.0,2.0]"}};
}
}  // namespace tosaic
