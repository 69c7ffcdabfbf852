// SPDX-License-Identifier: Apache-2.0
#include "shaders/prepare.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <span>

#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "plan/expression.h"
#include "plan/raise_grouped_convolutions.h"
#include "plan/transposed_convolutions.h"
#include "plan/uses.h"
#include "plan/views.h"
#include "shaders/kernels.h"
#include "shaders/moved_rows.h"
#include "shaders/quantised_weights.h"

namespace tosaic::shaders {
namespace {

Dim last_size(const Shape& shape) { return shape[shape.rank() - 1]; }

// Nodes that take the place of others: some come before node `n` of the graph as it was, some go.
class Replacing {
 public:
  explicit Replacing(Graph& graph) : graph_(graph), before_(graph.nodes.size()), dropped_(graph.nodes.size(), false) {}
  void put(std::uint32_t n, Node node) { before_[n].push_back(std::move(node)); }
  void drop(std::uint32_t n) { dropped_[n] = true; }
  bool is_dropped(std::uint32_t n) const { return dropped_[n]; }
  void finish() {
    std::vector<Node> nodes;
    for (std::size_t n = 0; n < before_.size(); ++n) {
      std::ranges::move(before_[n], std::back_inserter(nodes));
      if (!dropped_[n]) nodes.push_back(std::move(graph_.nodes[n]));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  Graph& graph_;
  std::vector<std::vector<Node>> before_;
  std::vector<bool> dropped_;
};

// A depthwise convolution of one pixel multiplies and adds for each channel, as the scales of a norm do: of integers,
// where 32 bits hold it.
struct ChannelScale {
  std::vector<std::int64_t> factors, sums;
};

std::optional<ChannelScale> channel_scale(const tosa::View& view) {
  if (view.node().op != tosa::op::depthwise_conv2d || is_float(view.in(0).dtype)) return std::nullopt;
  const auto factors = view.constant_integers(1), biases = view.constant_integers(2), zero = view.constant_integers(3),
             weight_zero = view.constant_integers(4);
  if (!factors || !biases || !zero || !weight_zero || weight_zero->at(0) != 0 || !view.all_are("pad", 0) ||
      !view.all_are("stride", 1) || !view.in(0).shape.is_static() ||
      last_size(view.in(0).shape) != Dim(std::ssize(*factors)))
    return std::nullopt;
  const std::int64_t largest = view.in(0).dtype == DType::i8 ? 255 : 32768;
  ChannelScale scale;
  for (std::size_t c = 0; c < factors->size(); ++c) {
    const std::int64_t factor = (*factors)[c], sum = (*biases)[biases->size() > 1 ? c : 0] - zero->at(0) * factor;
    if (std::abs(sum) + largest * std::abs(factor) > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    scale.factors.push_back(factor);
    scale.sums.push_back(sum);
  }
  return scale;
}

ValueId add_constant(Graph& graph, std::string name, DType dtype, Shape shape, std::span<const std::int64_t> numbers) {
  return graph.add_value(std::move(name), {dtype, std::move(shape), {}}, constant_bytes(dtype, numbers));
}

Node reshape(Graph& graph, ValueId from, ValueId to, LocRef loc) {
  const Shape& shape = graph[to].type.shape;
  const ValueId sizes =
      add_constant(graph, graph[to].name + ".shape", DType::shape, Shape{shape.rank()}, shape.sizes());
  return {tosa::op::reshape, {from, sizes}, {}, {to}, std::move(loc), {}};
}

// Views through which node `reader` alone sees the channels of `v`, last first.
std::vector<std::uint32_t> views_before(const plan::Uses& uses, ValueId v, std::uint32_t reader) {
  std::vector<std::uint32_t> views;
  const Dim channels = last_size(uses.type(v).shape);
  while (uses.only_user(v) == reader && uses.producer[v] >= 0) {
    reader = static_cast<std::uint32_t>(uses.producer[v]);
    if (!plan::is_view(uses.node(reader))) break;
    v = uses.node(reader).inputs[0];
    const Shape& shape = uses.type(v).shape;
    if (shape.rank() == 0 || !shape.is_static() || last_size(shape) != channels) break;
    views.push_back(reader);
  }
  return views;
}

// rows * factors + sums, and the RESCALE of that.
std::vector<Node> scaled_channels(Graph& graph, const ChannelScale& scale, ValueId rows, const Node& convolution,
                                  Node rescale) {
  const TensorType in = graph[rows].type;
  const std::string name = graph[rescale.outputs[0]].name;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(in.shape.rank()), 1);
  sizes.back() = std::ssize(scale.factors);
  const ValueId product = graph.add_value(name + ".product", {DType::i32, in.shape, {}}),
                sum = graph.add_value(name + ".sum", {DType::i32, in.shape, {}});
  const ValueId factors = add_constant(graph, name + ".factors", in.dtype, Shape(sizes), scale.factors),
                sums = add_constant(graph, name + ".sums", DType::i32, Shape(sizes), scale.sums);
  const std::vector<std::int64_t> zero{0};
  const ValueId shift = add_constant(graph, name + ".shift", DType::i8, Shape{1}, zero);
  rescale.inputs[0] = sum;
  if (const auto& known = graph[rescale.inputs[3]]; known.type.dtype != DType::i32 || !known.is_constant())
    rescale.inputs[3] = add_constant(graph, name + ".zero", DType::i32, Shape{1}, zero);
  return {{tosa::op::mul, {rows, factors, shift}, {}, {product}, convolution.loc, {}},
          {tosa::op::add, {product, sums}, {}, {sum}, convolution.loc, {}},
          std::move(rescale)};
}

// With the RESCALE after it, and before the views that made an image of its input.
void scale_channels(Graph& graph) {
  const plan::Uses uses(graph);
  Replacing replacing(graph);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto scale = channel_scale(tosa::View(graph, node));
    const auto next = scale ? uses.only_user(node.outputs[0]) : std::nullopt;
    if (!next || graph.nodes[*next].op != tosa::op::rescale) continue;
    const std::vector<std::uint32_t> views = views_before(uses, node.inputs[0], n);
    const ValueId rows = views.empty() ? node.inputs[0] : graph.nodes[views.back()].inputs[0];
    std::vector<Node> made = scaled_channels(graph, *scale, rows, node, graph.nodes[*next]);
    if (!views.empty()) {
      const ValueId result = made.back().outputs[0];
      const TensorType type{graph[result].type.dtype, graph[rows].type.shape, {}};
      made.back().outputs = {graph.add_value(graph[result].name + ".rows", type)};
      made.push_back(reshape(graph, made.back().outputs[0], result, made.back().loc));
    }
    for (Node& m : made) replacing.put(*next, std::move(m));
    for (std::uint32_t v : views) replacing.drop(v);
    replacing.drop(n);
    replacing.drop(*next);
  }
  replacing.finish();
}

// What views the elements that a kernel's result has become, views the result, so that the kernel finishes them: where
// each comes from one element, and from its channel at most.
void view_sums_first(Graph& graph) {
  const plan::Uses uses(graph);
  const auto only_maker = [&](ValueId v, std::uint32_t reader) -> std::optional<std::uint32_t> {
    if (uses.producer[v] < 0 || uses.only_user(v) != reader) return std::nullopt;
    return static_cast<std::uint32_t>(uses.producer[v]);
  };
  const auto is_of_one = [&](const Node& node, const Shape& shape) {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->elementwise || plan::is_view(node) || plan::walked_operands(*op) != 1 || node.outputs.size() != 1)
      return false;
    const Shape& own = graph[node.outputs[0]].type.shape;
    return own.rank() > 0 && last_size(own) == last_size(shape);
  };
  Replacing replacing(graph);
  for (auto n = static_cast<std::uint32_t>(graph.nodes.size()); n-- > 0;) {
    const Node& view = graph.nodes[n];
    if (view.op != tosa::op::reshape || replacing.is_dropped(n) || !uses.constant(view.inputs[1])) continue;
    const TensorType type = graph[view.outputs[0]].type;
    if (type.shape.rank() == 0) continue;
    std::vector<std::uint32_t> path, views, before;  // last first; views between nodes of the path, and before it
    for (auto m = only_maker(view.inputs[0], n); m; m = only_maker(graph.nodes[*m].inputs[0], *m)) {
      if (plan::is_view(graph.nodes[*m])) {
        before.push_back(*m);
      } else if (is_of_one(graph.nodes[*m], type.shape)) {
        path.push_back(*m);
        views.insert(views.end(), before.begin(), before.end());
        before.clear();
      } else {
        break;
      }
    }
    if (path.empty()) continue;
    std::ranges::reverse(path);
    const ValueId sums = graph.nodes[path.front()].inputs[0];
    const Node* kernel = plan::maker(graph, uses.producer, plan::skip_views(graph, uses.producer, sums));
    if (!kernel || kernel_rows(*kernel).empty()) continue;

    ValueId element = graph.add_value(graph[sums].name + ".seen", {graph[sums].type.dtype, type.shape, {}});
    replacing.put(path.front(), {view.op, {sums, view.inputs[1]}, view.attrs, {element}, view.loc, {}});
    for (std::uint32_t m : path) {
      Node& node = graph.nodes[m];
      node.inputs[0] = element;
      element = node.outputs[0];
      graph[element].type.shape = type.shape;
    }
    graph.nodes[path.back()].outputs = view.outputs;
    for (std::uint32_t v : views) replacing.drop(v);
    replacing.drop(n);
  }
  replacing.finish();
}

// Of a convolution whose windows lie side by side along the lines of an image of few channels, as the patches of a
// vision transformer do: pixels in a line of a window. nullopt: another one.
std::optional<std::int64_t> line_of_patch(const tosa::View& view) {
  if (view.node().op != tosa::op::conv2d || view.constant(1).null() || !view.in(0).shape.is_static() ||
      !view.out().shape.is_static())
    return std::nullopt;
  const Shape& in = view.in(0).shape;
  const std::int64_t line = view.in(1).shape.size(2), channels = in.size(3);
  const auto pad = view.ints("pad");
  const bool side_by_side = view.ints("stride")[1] == line && pad[2] == 0 && pad[3] == 0 &&
                            view.ints("dilation")[1] == 1 && in.size(2) == view.out().shape.size(2) * line;
  return side_by_side && channels % 4 != 0 && line * channels % 4 == 0 ? std::optional(line) : std::nullopt;
}

// Such a line becomes the channels of one pixel: kernels read four to sixteen channels at once.
void widen_pixels(Graph& graph) {
  Rewriter rewriter(graph);
  rewriter.each([&](Node& node) {
    const tosa::View view(graph, node);
    if (const auto line = line_of_patch(view)) {
      const std::vector<std::int64_t> stride{view.ints("stride")[0], 1};
      const auto widen = [&](ValueId v, std::int64_t pixels) {
        const TensorType& type = graph[v].type;
        const auto sizes = type.shape.sizes();
        return TensorType{type.dtype, Shape{sizes[0], sizes[1], sizes[2] / pixels, sizes[3] * pixels}, {}};
      };
      const ValueId image = node.inputs[0], weight = node.inputs[1];
      node.inputs[0] = graph.add_value(graph[image].name + ".lines", widen(image, *line));
      node.inputs[1] = graph.add_value(graph[weight].name + ".lines", widen(weight, *line), graph[weight].constant);
      node.attrs.set("stride", stride);
      rewriter.keep(reshape(graph, image, node.inputs[0], node.loc));
    }
    rewriter.keep(std::move(node));
  });
}

}  // namespace

Graph prepared(const Graph& graph) {
  std::optional<Graph> raised = raise_quantised(graph);
  Graph made = raised ? *std::move(raised) : graph;
  plan::transposed_as_convolutions(made);
  plan::raise_grouped_convolutions(made, [](const Graph&, const Node&) { return true; });
  gather_moved_rows(made);
  widen_pixels(made);
  scale_channels(made);
  view_sums_first(made);
  return made;
}

}  // namespace tosaic::shaders
