// SPDX-License-Identifier: Apache-2.0
// Convolutions of images, in few words.
#pragma once
#include "cpu/net.h"

namespace tosaic::test {

using Sizes = std::vector<std::int64_t>;

inline Attrs steps(const Sizes& pad, const Sizes& stride, DType sums) {
  return {{"pad", pad}, {"stride", stride}, {"dilation", Sizes{1, 1}}, {"acc_type", sums}, {"local_bound", false}};
}

// A convolution with random weights, of quantised values that count from -100 with weights that count from 0. Its sums.
inline ValueId plain(Net& net, ValueId x, std::int64_t out, const Sizes& kernel, const Sizes& pad,
                     const Sizes& stride) {
  const DType type = net.graph[x].type.dtype;
  const bool real = is_float(type);
  const DType sums = real ? type : DType::i32;
  const std::int64_t channels = net.graph[x].type.shape.size(3);
  const ValueId w = net.constant(type, {out, kernel[0], kernel[1], channels}, real ? -1 : -127, real ? 1 : 127),
                b = net.constant(sums, {out}, real ? -1 : -9000, real ? 1 : 9000);
  return net.node("conv2d", {x, w, b, net.numbers(type, {real ? 0 : -100}), net.numbers(type, {0})},
                  steps(pad, stride, real ? DType::f32 : sums));
}

// A plain convolution, what finishes it, a depthwise one, what finishes that.
struct Block {
  std::int64_t images, height, width, in, out;
  Sizes kernel, pad, stride;
};

inline ValueId add_block(Net& net, const Block& b, DType type, int which) {
  const bool real = is_float(type);
  const DType sums = real ? type : DType::i32;
  const ValueId x = net.input(type, {b.images, b.height, b.width, b.in}, real ? -1 : -128, real ? 1 : 127);
  const auto finished = [&](ValueId v, int how) {
    if (!real) return net.rescale(v, DType::i8, 38, 44, how % 2 == 0, 0, 3 - how);
    return how % 3 == 0 ? v : how % 3 == 1 ? net.node("sigmoid", {v}) : net.node("abs", {v});
  };
  const ValueId between = finished(plain(net, x, b.out, {1, 1}, {0, 0, 0, 0}, {1, 1}), which);
  const ValueId w = net.constant(type, {b.kernel[0], b.kernel[1], b.out, 1}, real ? -1 : -127, real ? 1 : 127),
                bias = net.constant(sums, {which % 2 ? b.out : 1}, real ? -1 : -9000, real ? 1 : 9000);
  const ValueId v = net.node("depthwise_conv2d",
                             {between, w, bias, net.numbers(type, {real ? 0 : 3 - which}), net.numbers(type, {0})},
                             steps(b.pad, b.stride, real ? DType::f32 : sums));
  return finished(v, which + 1);
}

}  // namespace tosaic::test
