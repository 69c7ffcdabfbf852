// SPDX-License-Identifier: Apache-2.0
#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t most_planes = 8;

// So many pixels of each plane are turned together: they fill the multipliers, and the weights stay small.
std::int64_t pixels_together(std::int64_t pixels) {
  for (const std::int64_t count : {16, 8, 4})
    if (pixels % count == 0 && pixels / count <= longest_axis) return count;
  return 0;
}

// Output j * channels + c is pixel j of plane c.
Ints selecting(std::int64_t pixels, std::int64_t channels) {
  Ints weights(static_cast<std::size_t>(pixels * channels * channels * pixels), 0);
  for (std::int64_t j = 0; j < pixels; ++j)
    for (std::int64_t c = 0; c < channels; ++c)
      weights[static_cast<std::size_t>(((j * channels + c) * channels + c) * pixels + j)] = 1;
  return weights;
}

}  // namespace

std::optional<Shape> turned_image(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::transpose || node.attrs.get<Ints>("perms") != Ints{0, 2, 3, 1}) return std::nullopt;
  const Shape& x = graph[node.inputs[0]].type.shape;
  return x.size(0) == 1 && x.size(1) > 1 ? std::optional(x) : std::nullopt;
}

// A transposition moves one element at a time.
void images_by_convolution(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    const auto x = turned_image(graph, node);
    const bool few_planes = x && x->size(1) <= most_planes && graph[node.inputs[0]].type.dtype == DType::i8;
    const std::int64_t together = few_planes ? pixels_together(x->size(2) * x->size(3)) : 0;
    if (together == 0) return out.keep(std::move(node));
    const std::int64_t channels = x->size(1), groups = x->size(2) * x->size(3) / together;
    const auto constant = [&](DType type, const Shape& shape, const Ints& values) {
      return graph.add_value("npu", {type, shape, {}}, constant_bytes(type, values));
    };
    const ValueId planes = out.reshape(node.inputs[0], {1, channels, groups, together}, node.loc);
    const ValueId weights =
        constant(DType::i8, {together * channels, channels, 1, together}, selecting(together, channels));
    const ValueId sums = out.add(
        tosa::op::conv2d,
        {planes, weights, constant(DType::i32, {1}, {0}), constant(DType::i8, {1}, {0}), constant(DType::i8, {1}, {0})},
        {{"pad", Ints{0, 0, 0, 0}},
         {"stride", Ints{1, 1}},
         {"dilation", Ints{1, 1}},
         {"acc_type", DType::i32},
         {"local_bound", false}},
        {DType::i32, {1, 1, groups, together * channels}, {}}, node.loc);
    const TensorType& y = graph[node.outputs[0]].type;
    const ValueId turned = out.rescaled_by_one(sums, y.with(graph[sums].type.shape), node.loc);
    out.reshape(turned, y.shape.sizes(), node.loc, node.outputs[0]);
  });
}

}  // namespace tosaic::ethos_u
