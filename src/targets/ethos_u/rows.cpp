// SPDX-License-Identifier: Apache-2.0
// A U85 of up to 256 MACs computes images in micro-blocks of 2x2 or 1x4 pixels, and one with odd sides (25x5, as sound
// often is) leaves a fifth of them idle. Between a 1x1 convolution and the mean over the image the image's shape means
// nothing: as a single row it fills the micro-blocks. What was measured is in docs/benchmarks/ethos-u.md.
#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t least_pixels = 100;  // with fewer, writing rows instead of bricks costs more than it saves
constexpr std::int64_t longest_row = 256;   // a pool's window
std::int64_t blocks(std::int64_t pixels, std::int64_t side) { return (pixels + side - 1) / side; }

bool gains_as_row(std::int64_t height, std::int64_t width) {
  const std::int64_t pixels = height * width;
  const std::int64_t as_image = blocks(height, 2) * blocks(width, 2), as_row = blocks(pixels, 4);
  return pixels >= least_pixels && pixels <= longest_row && (as_image - as_row) * 7 >= as_image;
}

bool is_mean_of_image(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::avg_pool2d) return false;
  const Shape& x = graph[node.inputs[0]].type.shape;
  return x.size(0) == 1 && node.attrs.get<Ints>("kernel") == Ints{x.size(1), x.size(2)} &&
         node.attrs.get<Ints>("pad") == Ints{0, 0, 0, 0} && gains_as_row(x.size(1), x.size(2));
}

bool is_pointwise(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv2d) return false;
  const Shape& weight = graph[node.inputs[1]].type.shape;
  return weight[1] == 1 && weight[2] == 1 && node.attrs.get<Ints>("stride") == Ints{1, 1} &&
         node.attrs.get<Ints>("pad") == Ints{0, 0, 0, 0};
}

// One computed operand, pixel by pixel; the others are constants without height and width.
bool keeps_pixels(const Graph& graph, const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  if (!op || !(op->elementwise || node.op == tosa::op::rescale) || node.outputs.size() != 1) return false;
  for (std::size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& operand = graph[node.inputs[i]];
    const Shape& shape = operand.type.shape;
    if (!operand.is_constant() || (shape.rank() == 4 && shape.size(1) * shape.size(2) != 1)) return false;
  }
  return true;
}

// The nodes from a 1x1 convolution to the mean `last`, each read by the next alone; empty: there is none.
std::vector<std::size_t> chain_to(const Graph& graph, std::size_t last, const std::vector<std::int32_t>& made_by,
                                  const std::vector<char>& once) {
  std::vector<std::size_t> chain{last};
  for (;;) {
    const ValueId v = graph.nodes[chain.back()].inputs[0];
    if (made_by[v] < 0 || !once[v]) return {};
    chain.push_back(static_cast<std::size_t>(made_by[v]));
    const Node& node = graph.nodes[chain.back()];
    if (is_pointwise(graph, node)) return chain;
    if (!keeps_pixels(graph, node)) return {};
  }
}

}  // namespace

void images_as_single_rows(Graph& graph) {
  const auto made_by = producers(graph);
  const auto once = read_once(graph);
  std::vector<char> starts(graph.nodes.size(), 0);  // convolutions whose image becomes a row
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!is_mean_of_image(graph, graph.nodes[n])) continue;
    const auto chain = chain_to(graph, n, made_by, once);
    if (chain.empty()) continue;
    const Shape image = graph[graph.nodes[n].inputs[0]].type.shape;
    for (std::size_t i : chain) {
      if (i == n) continue;
      Shape& shape = graph[graph.nodes[i].outputs[0]].type.shape;
      shape = Shape{1, 1, image.size(1) * image.size(2), shape.size(3)};
    }
    graph.nodes[n].attrs.set("kernel", Ints{1, image.size(1) * image.size(2)});
    graph.nodes[n].attrs.set("stride", Ints{1, 1});
    starts[chain.back()] = 1;
  }
  Rewriter out(graph);
  for (std::size_t n = 0; n < starts.size(); ++n) {
    Node& node = out.nodes()[n];
    if (starts[n]) {
      const Shape x = graph[node.inputs[0]].type.shape;
      node.inputs[0] = out.reshape(node.inputs[0], {1, 1, x.size(1) * x.size(2), x.size(3)}, node.loc);
    }
    out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
