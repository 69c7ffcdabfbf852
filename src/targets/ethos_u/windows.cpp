// SPDX-License-Identifier: Apache-2.0
// A convolution whose windows lie side by side (kernel = stride, as in a transformer's patch embedding) costs a command
// per window where the stride is above 3. The same sums are a 1x1 convolution on the image with each window's pixels
// in its channels: rows of k pixels are neighbours already, k slices and a concatenation bring the rows together.
#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t most_native_stride = 3;

bool side_by_side(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv2d || !graph[node.inputs[1]].is_constant()) return false;
  const Shape &x = graph[node.inputs[0]].type.shape, &weight = graph[node.inputs[1]].type.shape;
  const std::int64_t k = weight.size(1);
  return k > most_native_stride && weight.size(2) == k && x.size(0) == 1 && x.size(1) % k == 0 && x.size(2) % k == 0 &&
         node.attrs.get<Ints>("stride") == Ints{k, k} && node.attrs.get<Ints>("dilation") == Ints{1, 1} &&
         node.attrs.get<Ints>("pad") == Ints{0, 0, 0, 0};
}

}  // namespace

void windows_into_channels(Graph& graph) {
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (!side_by_side(graph, node)) return out.keep(std::move(node));
    const Shape x = graph[node.inputs[0]].type.shape;
    const Value weight = graph[node.inputs[1]];  // OHWI, which is the order that the slices come in
    const std::int64_t k = weight.type.shape.size(1), rows = x.size(1) / k, columns = x.size(2) / k,
                       pixels = k * x.size(3);
    const ValueId view = out.reshape(node.inputs[0], {1, rows, k * columns, pixels}, node.loc);
    std::vector<ValueId> parts;
    for (std::int64_t i = 0; i < k; ++i)
      parts.push_back(out.slice(view, {0, 0, i * columns, 0}, {1, rows, columns, pixels}, node.loc));
    node.inputs[0] = out.add(tosa::op::concat, parts, {{"axis", std::int64_t{3}}},
                             graph[view].type.with(Shape{1, rows, columns, k * pixels}), node.loc);
    node.inputs[1] = graph.add_value(weight.name, weight.type.with(Shape{weight.type.shape.size(0), 1, 1, k * pixels}),
                                     weight.constant);
    node.attrs.set("stride", Ints{1, 1});
    out.keep(std::move(node));
  });
}

}  // namespace tosaic::ethos_u
