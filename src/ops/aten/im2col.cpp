// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/lowering/index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// torch.nn.functional.unfold: the image, padded and flattened, is read window by window.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const bool added = x.rank() == 3;
  if (added) x = b.unsqueeze(x, 0);
  if (x.rank() != 4) b.refuse("aten.im2col.rank", "an input of shape " + to_string(x.shape()));
  const auto kernel = call.spread("kernel_size", 2), dilation = call.spread("dilation", 2),
             padding = call.spread("padding", 2), stride = call.spread("stride", 2);
  for (const auto* list : {&kernel, &dilation, &padding, &stride})
    if (list->size() != 2 || std::min((*list)[0], (*list)[1]) < (list == &padding ? 0 : 1))
      b.refuse("aten.im2col.arguments",
               "kernel, dilation and stride must be at least 1, padding at least 0, two numbers each");
  x = b.pad(x, {0, 0, padding[0], padding[1]}, {0, 0, padding[0], padding[1]}, 0.0);
  const std::int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
  const std::int64_t rows = (h - (kernel[0] - 1) * dilation[0] - 1) / stride[0] + 1,
                     columns = (w - (kernel[1] - 1) * dilation[1] - 1) / stride[1] + 1;
  if (rows < 1 || columns < 1) b.refuse("aten.im2col.size", "the window does not fit shape " + to_string(x.shape()));
  std::vector<std::int64_t> positions;
  for (std::int64_t ky = 0; ky < kernel[0]; ++ky)
    for (std::int64_t kx = 0; kx < kernel[1]; ++kx)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t k = 0; k < columns; ++k)
          positions.push_back((r * stride[0] + ky * dilation[0]) * w + k * stride[1] + kx * dilation[1]);
  const auto count = static_cast<std::int64_t>(positions.size());
  Val y = selected(b.reshape(x, {n * c, h * w}), 1, b.integers(positions, DType::i32, {count}));
  y = b.reshape(y, {n, c * kernel[0] * kernel[1], rows * columns});
  return added ? b.squeeze(y, {0}) : y;
}
}  // namespace

AtenOp aten_im2col() {
  return {
      .schemas = {"im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor"},
      .summary = "the windows of an image as columns",
      .rule = Rule::transparent,
      .lower = {lower},
      .domain = {"x(2,3,5,6), [2,3], [1,1], [1,0], [2,1]", "x(2,5,5), [2,2], [2,2], [0,0], [1,1]"}};
}
}  // namespace tosaic
