// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/dense_convolution.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_conv2d() {
  Op op = dense_convolution_row("conv2d", 3, "2-D convolution of NHWC by OHWI weights, plus bias", 2);
  // PyTorch has channels first, in weights, too.
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    using Ints = std::vector<std::int64_t>;
    const TensorType& y = node.out();
    const Ints& pad = node.ints("pad");
    if (node.in(2).shape != Shape{y.shape.size(3)} || !is_float(node.in(0).dtype) || pad[0] != pad[1] ||
        pad[2] != pad[3])
      return false;
    const auto channels_first = [](const Shape& s) { return Shape{s.size(0), s.size(3), s.size(1), s.size(2)}; };
    const auto operand = [&](std::size_t i) {
      return calls.made(aten::op::permute_copy, {calls.operand(i)}, {{"dims", Ints{0, 3, 1, 2}}},
                        {node.in(i).dtype, channels_first(node.in(i).shape), {}});
    };
    const ValueId x = operand(0), w = operand(1);
    const ValueId made = calls.made(aten::op::convolution, {x, w, calls.operand(2)},
                                    {{"stride", node.ints("stride")},
                                     {"padding", Ints{pad[0], pad[2]}},
                                     {"dilation", node.ints("dilation")},
                                     {"transposed", false},
                                     {"output_padding", Ints{0, 0}},
                                     {"groups", std::int64_t{1}}},
                                    {y.dtype, channels_first(y.shape), {}});
    return calls.gives(aten::op::permute_copy, {made}, {{"dims", Ints{0, 2, 3, 1}}});
  };
  return op;
}
}  // namespace tosaic::tosa
