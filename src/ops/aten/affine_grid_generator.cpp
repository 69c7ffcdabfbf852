// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"
#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// Positions from -1 to 1: of the corner pixels' centres, or of the image's edges.
double position(std::int64_t i, std::int64_t size, bool corners) {
  if (size <= 1) return 0;
  const double at = 2.0 * static_cast<double>(i) / static_cast<double>(size - 1) - 1;
  return corners ? at : at * static_cast<double>(size - 1) / static_cast<double>(size);
}

// Every position of the output, (x, y, 1) or (x, y, z, 1), times the transposed matrix of its image.
Vals lower(Builder& b, const Call& call) {
  const Val theta = call.tensor("theta");
  const auto size = call.ints("size");
  const int spatial = static_cast<int>(size.size()) - 2;
  if ((spatial != 2 && spatial != 3) || theta.rank() != 3 || theta.dim(0) != size[0] || theta.dim(1) != spatial ||
      theta.dim(2) != spatial + 1)
    b.refuse("aten.affine_grid_generator.shape",
             "matrices of shape " + to_string(theta.shape()) + " for images of shape " + to_string(Shape(size)));
  creation::check_size(call, Shape(size));
  const bool corners = call.flag("align_corners");
  const std::int64_t depth = spatial == 3 ? size[2] : 1, height = size[size.size() - 2], width = size.back();
  std::vector<double> base;
  for (std::int64_t z = 0; z < depth; ++z)
    for (std::int64_t y = 0; y < height; ++y)
      for (std::int64_t x = 0; x < width; ++x) {
        base.push_back(position(x, width, corners));
        base.push_back(position(y, height, corners));
        if (spatial == 3) base.push_back(position(z, depth, corners));
        base.push_back(1);
      }
  const std::int64_t n = size[0], points = depth * height * width, k = spatial + 1;
  std::vector<double> all;
  for (std::int64_t i = 0; i < n; ++i) all.insert(all.end(), base.begin(), base.end());
  const Val grid = b.constant({theta.dtype(), Shape{n, points, k}, std::nullopt}, constant_bytes(theta.dtype(), all));
  std::vector<std::int64_t> dims{n};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.push_back(spatial);
  return calls::view(b.aten(aten::op::bmm, {grid, calls::transpose(theta, 1, 2)}), Shape(dims));
}
}  // namespace

AtenOp aten_affine_grid_generator() {
  return {.schemas = {"affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor"},
          .summary = "the positions at which an affine transformation reads an image, for grid_sampler",
          .rule = Rule::inside,
          .lower = {lower},
          .domain = {"x(2,2,3), [2,1,3,4], False", "x(1,2,3), [1,3,4,5], True", "x(1,2,3), [1,3,1,4], True",
                     "x(2,3,4), [2,1,2,3,4], False", "x(1,3,4), [1,2,3,2,2], True"}};
}
}  // namespace tosaic
