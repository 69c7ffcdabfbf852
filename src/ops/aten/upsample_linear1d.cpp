// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_upsample(b, call, 1, Sampling::bilinear); }
}  // namespace

AtenOp aten_upsample_linear1d() {
  return {
      .schemas =
          {"upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
           "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> "
           "Tensor"},
      .summary = "a sequence resized by weighing the two elements around each position",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"default: x(1,2,1), [9], True", "default: x(1,2,4), [8], False", "default: x(1,2,5), [8], True",
                 "vec: x(1,2,4), None, False, [2.0]"}};
}
}  // namespace tosaic
