// SPDX-License-Identifier: Apache-2.0
#include "cpu/window.h"

namespace tosaic::cpu {

Window window_of(const Graph& graph, const Node& node) {
  Window w;
  const Shape& in = graph[node.inputs[0]].type.shape;
  const Shape& out = graph[node.outputs[0]].type.shape;
  const int spatial = in.rank() - 2, skip = 3 - spatial;
  w.batch = in[0];
  w.channels = in[in.rank() - 1];
  const auto& pad = node.attrs.get<std::vector<std::int64_t>>("pad");
  const auto& stride = node.attrs.get<std::vector<std::int64_t>>("stride");
  const bool pool = node.attrs.find("kernel") != nullptr;
  for (int d = 0; d < spatial; ++d) {
    const auto to = static_cast<std::size_t>(skip + d), from = static_cast<std::size_t>(d);
    w.in[to] = in[1 + d];
    w.out[to] = out[1 + d];
    w.before[to] = pad[2 * from];
    w.stride[to] = stride[from];
    if (pool) {
      w.kernel[to] = node.attrs.get<std::vector<std::int64_t>>("kernel")[from];
    } else {
      // Convolutions have weights [OC,(KD,)KH,KW,IC], depthwise ones [KH,KW,C,M].
      const Shape& weight = graph[node.inputs[1]].type.shape;
      w.kernel[to] = weight[node.op == "tosa.depthwise_conv2d" ? d : 1 + d];
      w.dilation[to] = node.attrs.get<std::vector<std::int64_t>>("dilation")[from];
    }
  }
  return w;
}

}  // namespace tosaic::cpu
