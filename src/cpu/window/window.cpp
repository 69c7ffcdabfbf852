// SPDX-License-Identifier: Apache-2.0
#include "cpu/window/window.h"

#include <cstring>

#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {

Window window_of(const Graph& graph, const Node& node) {
  Window w;
  const Shape& in = graph[node.inputs[0]].type.shape;
  const Shape& out = graph[node.outputs[0]].type.shape;
  const int spatial = in.rank() - 2, skip = 3 - spatial;
  w.batch = in.size(0);
  w.channels = w.pixel = in.size(in.rank() - 1);
  if (node.op == extension::op::grouped_conv2d) w.channels = graph[node.inputs[1]].type.shape.size(3);
  const bool transposed = node.op == tosa::op::transpose_conv2d;
  const auto& pad = node.attrs.get<std::vector<std::int64_t>>(transposed ? "out_pad" : "pad");
  const auto& stride = node.attrs.get<std::vector<std::int64_t>>("stride");
  const bool pool = node.attrs.find("kernel") != nullptr;
  for (int d = 0; d < spatial; ++d) {
    const auto to = static_cast<std::size_t>(skip + d), from = static_cast<std::size_t>(d);
    w.in[to] = in.size(1 + d);
    w.out[to] = out.size(1 + d);
    w.before[to] = pad[2 * from];
    w.stride[to] = stride[from];
    if (pool) {
      w.kernel[to] = node.attrs.get<std::vector<std::int64_t>>("kernel")[from];
    } else {
      // Convolutions have weights [OC,(KD,)KH,KW,IC], depthwise ones [KH,KW,C,M].
      const Shape& weight = graph[node.inputs[1]].type.shape;
      w.kernel[to] = weight.size(node.op == tosa::op::depthwise_conv2d ? d : 1 + d);
      if (!transposed) w.dilation[to] = node.attrs.get<std::vector<std::int64_t>>("dilation")[from];
    }
    if (transposed) {  // tap k of output o reads input place o - out_pad - k; turned round, o - before + k
      w.before[to] = pad[2 * from] + w.kernel[to] - 1;
      w.spread[to] = stride[from];
      w.stride[to] = 1;
    }
  }
  return w;
}

bool is_dense_convolution(const Node& node) {
  return node.op == tosa::op::conv2d || node.op == tosa::op::conv3d || node.op == tosa::op::transpose_conv2d;
}

bool lie_as_patches(const Node& node) { return node.op != tosa::op::transpose_conv2d; }

namespace {
bool is_convolution(const Node& node) { return is_dense_convolution(node) || node.op == extension::op::grouped_conv2d; }
}  // namespace

bool is_convolution_of_floats(const Graph& graph, const Node& node) {
  return is_convolution(node) && graph[node.inputs[0]].type.dtype == DType::f32 &&
         graph[node.inputs[1]].is_constant() && graph[node.inputs[2]].is_constant();
}

bool is_convolution_of_i8(const Graph& graph, const Node& node) {
  if (!is_convolution(node) || graph[node.inputs[0]].type.dtype != DType::i8) return false;
  const DType weight = graph[node.inputs[1]].type.dtype;
  return (weight == DType::i8 || weight == DType::i4) &&
         std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](ValueId v) { return graph[v].is_constant(); });
}

bool has_kernels_of_groups(const Graph& graph, const Node& node) {
  return is_convolution_of_floats(graph, node) || is_convolution_of_i8(graph, node);
}

Bytes patch_weights(const Graph& graph, const Node& node) {
  const Value& weight = graph[node.inputs[1]];
  if (lie_as_patches(node)) return weight.constant;
  const Shape& shape = weight.type.shape;
  const std::int64_t taps = shape.size(1) * shape.size(2);
  const std::size_t tap_bytes = static_cast<std::size_t>(shape.size(3)) * storage_size(weight.type.dtype);
  std::vector<std::byte> turned(weight.constant.size());
  for (std::int64_t i = 0; i < shape.size(0) * taps; ++i) {
    const std::int64_t from = i / taps * taps + (taps - 1 - i % taps);
    std::memcpy(turned.data() + static_cast<std::size_t>(i) * tap_bytes,
                weight.constant.data() + static_cast<std::size_t>(from) * tap_bytes, tap_bytes);
  }
  return Bytes::of(std::move(turned));
}

}  // namespace tosaic::cpu
