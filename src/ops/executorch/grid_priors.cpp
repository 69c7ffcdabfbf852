// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() < 2) b.refuse("aten.grid_priors.rank", "an input of shape " + to_string(x.shape()));
  if (x.dim(-2) * x.dim(-1) > 1 << 26) b.refuse("aten.grid_priors.size", "an input of shape " + to_string(x.shape()));
  const double stride = static_cast<double>(call.integer("stride")), offset = call.number("offset");
  std::vector<double> values;
  for (std::int64_t row = 0; row < x.dim(-2); ++row)
    for (std::int64_t column = 0; column < x.dim(-1); ++column) {
      values.push_back((static_cast<double>(column) + offset) * stride);
      values.push_back((static_cast<double>(row) + offset) * stride);
    }
  const TensorType type{DType::f32, Shape{x.dim(-2) * x.dim(-1), 2}, {}};
  return b.constant(type, constant_bytes(type.dtype, values));
}
}  // namespace

AtenOp aten_grid_priors() {
  return {.schemas = {"et_vk::grid_priors(Tensor self, int stride, float offset) -> Tensor"},
          .summary = "the coordinates of an image's pixels, x then y (ExecuTorch's Vulkan flow)",
          .rule = Rule::index,
          .lower = {lower},
          .domain = {"x(1,2,3,4), 8, 0.5", "x(2,5), 2, 0.0"}};
}
}  // namespace tosaic
