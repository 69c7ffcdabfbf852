// SPDX-License-Identifier: Apache-2.0
// Convolutions of groups of channels, as TOSA has them: a SLICE and a CONV2D for each group, and a CONCAT.
#pragma once
#include <fmt/format.h>

#include <algorithm>

#include "cpu/net.h"

namespace tosaic::test {

struct ChannelGroups {
  std::int64_t images, height, width;
  std::int64_t groups, in, out;  // in, out: channels of each group
  std::vector<std::int64_t> kernel{3, 3}, pad{1, 1, 1, 1}, stride{1, 1}, dilation{1, 1};

  std::string text() const {
    return fmt::format("{}x{}x{}, {} groups of {} to {}, kernel {} pad {} stride {} dilation {}", images, height, width,
                       groups, in, out, to_string(Shape(kernel)), to_string(Shape(pad)), to_string(Shape(stride)),
                       to_string(Shape(dilation)));
  }
};

// What finishes each group, and what the groups are put together as.
inline ValueId convolved_groups(Net& net, const ChannelGroups& c, ValueId x,
                                const std::function<ValueId(ValueId sums)>& finish = {}, DType weight_type = DType::i8,
                                std::int64_t weight_zero = 0) {
  const DType type = net.graph[x].type.dtype;
  const bool real = is_float(type);
  const DType weights = real ? type : weight_type, sums = real ? type : type == DType::i16 ? DType::i48 : DType::i32;
  const ValueId zero = net.numbers(type, {type == DType::i8 ? -100 : 0}), w_zero = net.numbers(weights, {weight_zero});
  const double most = real ? 1 : weights == DType::i4 ? 7 : 127;
  std::vector<ValueId> parts;
  for (std::int64_t g = 0; g < c.groups; ++g) {
    const ValueId part =
        net.node("slice", {x, net.shape({0, 0, 0, g * c.in}), net.shape({c.images, c.height, c.width, c.in})});
    const ValueId w = net.constant(weights, {c.out, c.kernel[0], c.kernel[1], c.in}, -most, most),
                  b = net.constant(sums, {g % 3 == 2 ? 1 : c.out}, real ? -1 : -9000, real ? 1 : 9000);
    const ValueId v = net.node("conv2d", {part, w, b, zero, w_zero},
                               {{"pad", c.pad},
                                {"stride", c.stride},
                                {"dilation", c.dilation},
                                {"acc_type", real ? DType::f32 : sums},
                                {"local_bound", false}});
    parts.push_back(finish ? finish(v) : v);
  }
  return net.node("concat", parts, {{"axis", std::int64_t{3}}});
}

inline ValueId image_of_groups(Net& net, const ChannelGroups& c, DType type) {
  const double most = type == DType::i8 ? 127 : type == DType::i16 ? 30000 : 1;
  return net.input(type, {c.images, c.height, c.width, c.groups * c.in}, is_float(type) ? -1 : -most - 1, most);
}

}  // namespace tosaic::test
