// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) { return lower_upsample(b, call, 1, Sampling::nearest); }
}  // namespace

AtenOp aten_upsample_nearest1d() {
  return {.schemas = {"upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
                      "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
          .summary = "a sequence stretched by repeating elements",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(1,2,4), [8]", "vec: x(1,2,4), None, [3.0]"}};
}
}  // namespace tosaic
