// SPDX-License-Identifier: Apache-2.0
// Convolutions with a third dimension, long strides or tall kernels, as plain ones on more channels: what the kernel
// reaches along one axis is concatenated in the channels, and the weights in the same order. The sums are the
// same numbers, and stay one CONV2D, whose RESCALE can be fused.
#include <algorithm>

#include "targets/ethos_u/express.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t longest_stride = 3, tallest_kernel = 64, largest_kernel = 64 * 64;

// A convolution by parts; x and the weights change together.
struct Conv {
  Words say;
  ValueId x, input_zp;
  Ints weights;       // OHWI
  std::int64_t zero;  // of the weights
  Ints kernel, stride, dilation, pad;
  std::int64_t outputs, channels;

  std::int64_t size(int axis) const { return say.type(x).shape.size(1 + axis); }
  std::int64_t reach(std::size_t axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

std::optional<Conv> conv_of(Rewriter& out, Graph& graph, const Node& node) {
  const tosa::View view(graph, node);
  const auto weights = weights_of(graph, node), zero = view.constant_integers(4);
  if (!weights || !zero || view.in(1).dtype != DType::i8) return std::nullopt;
  const Shape& w = view.in(1).shape;
  Conv conv{{out, graph, node.loc}, node.inputs[0],        node.inputs[3],   *weights,  zero->at(0),         {},
            view.ints("stride"),    view.ints("dilation"), view.ints("pad"), w.size(0), w.size(w.rank() - 1)};
  for (int d = 1; d + 1 < w.rank(); ++d) conv.kernel.push_back(w.size(d));
  return conv;
}

ValueId write(Conv& conv, const Node& node, TensorType type, ValueId to = no_value) {
  Graph& graph = conv.say.graph;
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = conv.x;
  const Shape shape{conv.outputs, conv.kernel[0], conv.kernel[1], conv.channels};
  inputs[1] = graph.add_value("npu", {DType::i8, shape, {}}, constant_bytes(DType::i8, conv.weights));
  Attrs attrs = node.attrs;
  attrs.set("pad", conv.pad);
  attrs.set("stride", conv.stride);
  attrs.set("dilation", conv.dilation);
  return conv.say.out.add(tosa::op::conv2d, inputs, std::move(attrs), std::move(type), node.loc, to);
}

// The padding along one axis made real, so that `total` pixels are there; what no window reaches is cut off.
void lay_out(Conv& conv, int axis, std::int64_t total) {
  const auto a = static_cast<std::size_t>(2 * axis);
  const std::int64_t behind = total - conv.pad[a] - conv.size(axis);
  conv.x = conv.say.pad(conv.x, 1 + axis, conv.pad[a], std::max<std::int64_t>(behind, 0), conv.input_zp);
  conv.x = conv.say.slice(conv.x, 1 + axis, 0, total);
  conv.pad[a] = conv.pad[a + 1] = 0;
}

// Weights of kernel (h, w) on c channels from the old ones: at(y, x, channel) gives the old (y, x, channel), or
// nothing.
struct Tap {
  std::int64_t y, x, channel;
};
template <class At>
void new_weights(Conv& conv, std::int64_t h, std::int64_t w, std::int64_t c, const At& at) {
  Ints weights(static_cast<std::size_t>(conv.outputs * h * w * c), conv.zero);
  for (std::int64_t o = 0, i = 0; o < conv.outputs; ++o)
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t x = 0; x < w; ++x)
        for (std::int64_t k = 0; k < c; ++k, ++i)
          if (const std::optional<Tap> t = at(y, x, k))
            weights[static_cast<std::size_t>(i)] = conv.weights[static_cast<std::size_t>(
                ((o * conv.kernel[0] + t->y) * conv.kernel[1] + t->x) * conv.channels + t->channel)];
  conv.weights = std::move(weights);
  conv.kernel = {h, w};
  conv.channels = c;
}

// Element `tap` of a kernel, with dilation, where it has one.
std::optional<std::int64_t> element(std::int64_t tap, std::int64_t kernel, std::int64_t dilation) {
  if (tap % dilation != 0 || tap / dilation >= kernel) return std::nullopt;
  return tap / dilation;
}

// s neighbours along W are neighbours in memory: the view (N, H, W / s, s * C) is free.
void columns_into_channels(Conv& conv, std::int64_t out_width) {
  const std::int64_t s = conv.stride[1], taps = (conv.reach(1) + s - 1) / s, c = conv.channels;
  lay_out(conv, 1, (out_width - 1 + taps) * s);
  const Shape x = conv.say.type(conv.x).shape;
  conv.x = conv.say.reshape(conv.x, {x.size(0), x.size(1), x.size(2) / s, s * c});
  const std::int64_t kernel = conv.kernel[1], dilation = conv.dilation[1];
  new_weights(conv, conv.kernel[0], taps, s * c, [=](auto y, auto q, auto k) -> std::optional<Tap> {
    const auto column = element(q * s + k / c, kernel, dilation);
    if (!column) return std::nullopt;
    return Tap{y, *column, k % c};
  });
  conv.stride[1] = conv.dilation[1] = 1;
}

// s neighbours along H are s slices of the view (N, H / s, s * W, C).
void rows_into_channels(Conv& conv, std::int64_t out_height) {
  const std::int64_t s = conv.stride[0], taps = (conv.reach(0) + s - 1) / s, c = conv.channels;
  lay_out(conv, 0, (out_height - 1 + taps) * s);
  const Shape x = conv.say.type(conv.x).shape;
  const ValueId view = conv.say.reshape(conv.x, {x.size(0), x.size(1) / s, s * x.size(2), c});
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < std::min(s, conv.reach(0)); ++i)
    parts.push_back(conv.say.slice(view, 2, i * x.size(2), x.size(2)));
  conv.x = conv.say.concat(parts, 3);
  const std::int64_t kernel = conv.kernel[0], dilation = conv.dilation[0];
  new_weights(conv, taps, conv.kernel[1], static_cast<std::int64_t>(parts.size()) * c,
              [=](auto q, auto column, auto k) -> std::optional<Tap> {
                const auto row = element(q * s + k / c, kernel, dilation);
                if (!row) return std::nullopt;
                return Tap{*row, column, k % c};
              });
  conv.stride[0] = conv.dilation[0] = 1;
}

}  // namespace

bool conv3d_by_slices(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv3d) return false;
  auto conv = conv_of(out, graph, node);
  if (!conv) return false;
  Words& say = conv->say;
  const Shape x = say.type(conv->x).shape;
  const TensorType result = say.type(node.outputs[0]);
  const std::int64_t depth = result.shape.size(1), taps = conv->kernel[0], step = conv->stride[0],
                     gap = conv->dilation[0], c = conv->channels;
  // All depths that a slice of each tap touches.
  const std::int64_t total = (taps - 1) * gap + step * depth;
  ValueId v = say.reshape(conv->x, {x.size(0), x.size(1), x.size(2) * x.size(3), c});
  v = say.pad(v, 1, conv->pad[0], std::max<std::int64_t>(0, total - conv->pad[0] - x.size(1)), conv->input_zp);
  std::vector<ValueId> parts;
  for (std::int64_t k = 0; k < taps; ++k) {
    const ValueId part = say.every(say.slice(v, 1, k * gap, step * depth), 1, step);
    parts.push_back(say.reshape(part, {x.size(0) * depth, x.size(2), x.size(3), c}));
  }
  conv->x = say.concat(parts, 3);
  // O D H W I -> O H W (D I)
  Ints weights(conv->weights.size());
  const std::int64_t h = conv->kernel[1], w = conv->kernel[2];
  for (std::int64_t o = 0, i = 0; o < conv->outputs; ++o)
    for (std::int64_t y = 0; y < h; ++y)
      for (std::int64_t z = 0; z < w; ++z)
        for (std::int64_t d = 0; d < taps; ++d)
          for (std::int64_t k = 0; k < c; ++k, ++i)
            weights[static_cast<std::size_t>(i)] =
                conv->weights[static_cast<std::size_t>((((o * taps + d) * h + y) * w + z) * c + k)];
  conv->weights = std::move(weights);
  conv->channels = taps * c;
  for (Ints* list : {&conv->kernel, &conv->stride, &conv->dilation}) list->erase(list->begin());
  conv->pad.erase(conv->pad.begin(), conv->pad.begin() + 2);
  TensorType flat = result.with(Shape{x.size(0) * depth, result.shape.size(2), result.shape.size(3), conv->outputs});
  if (flat.scales && !flat.scales->per_tensor()) flat.scales->axis = flat.rank() - 1;
  const ValueId y = write(*conv, node, std::move(flat));
  say.reshape(y, result.shape.sizes(), node.outputs[0]);
  return true;
}

bool long_stride_into_channels(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv2d) return false;
  auto conv = conv_of(out, graph, node);
  if (!conv || std::max(conv->stride[0], conv->stride[1]) <= longest_stride) return false;
  const TensorType result = graph[node.outputs[0]].type;
  if (conv->stride[1] > longest_stride) columns_into_channels(*conv, result.shape.size(2));
  if (conv->stride[0] > longest_stride) rows_into_channels(*conv, result.shape.size(1));
  write(*conv, node, result, node.outputs[0]);
  return true;
}

// A kernel too tall or too large in all, in parts of as many rows each, side by side in the channels.
bool tall_kernel_into_channels(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv2d) return false;
  auto conv = conv_of(out, graph, node);
  if (!conv) return false;
  const std::int64_t kernel = conv->kernel[0], gap = conv->dilation[0], c = conv->channels;
  const auto fits = [&](std::int64_t rows) {
    const std::int64_t height = (rows - 1) * gap + 1;
    return height <= tallest_kernel && height * conv->reach(1) <= largest_kernel;
  };
  std::int64_t splits = 1;
  while (splits < kernel && !fits((kernel + splits - 1) / splits)) ++splits;
  const std::int64_t rows = (kernel + splits - 1) / splits;
  if (splits == 1 || !fits(rows)) return false;
  const TensorType result = graph[node.outputs[0]].type;
  const std::int64_t length = (result.shape.size(1) - 1) * conv->stride[0] + (rows - 1) * gap + 1;
  lay_out(*conv, 0, (splits - 1) * rows * gap + length);
  std::vector<ValueId> parts;
  for (std::int64_t p = 0; p < splits; ++p) parts.push_back(conv->say.slice(conv->x, 1, p * rows * gap, length));
  conv->x = conv->say.concat(parts, 3);
  new_weights(*conv, rows, conv->kernel[1], splits * c, [=](auto y, auto column, auto k) -> std::optional<Tap> {
    const std::int64_t row = k / c * rows + y;
    if (row >= kernel) return std::nullopt;
    return Tap{row, column, k % c};
  });
  write(*conv, node, result, node.outputs[0]);
  return true;
}

// A depthwise kernel that is too tall as one that sees all channels and weighs the others with zero.
bool depthwise_as_dense(Rewriter& out, Graph& graph, const Node& node) {
  constexpr std::int64_t most_weights = 1 << 22;
  if (node.op != tosa::op::depthwise_conv2d) return false;
  const tosa::View view(graph, node);
  const auto weights = weights_of(graph, node), zero = view.constant_integers(4);
  const Shape w = view.in(1).shape;  // H W C M
  const std::int64_t channels = w.size(2), outputs = w.size(2) * w.size(3);
  if (!weights || !zero || view.in(1).dtype != DType::i8 || outputs * w.size(0) * w.size(1) * channels > most_weights)
    return false;
  Ints dense(static_cast<std::size_t>(outputs * w.size(0) * w.size(1) * channels), zero->at(0));
  for (std::int64_t k = 0; k < w.size(0) * w.size(1); ++k)
    for (std::int64_t o = 0; o < outputs; ++o)
      dense[static_cast<std::size_t>((o * w.size(0) * w.size(1) + k) * channels + o / w.size(3))] =
          (*weights)[static_cast<std::size_t>(k * outputs + o)];
  std::vector<ValueId> inputs = node.inputs;
  inputs[1] = graph.add_value("npu", {DType::i8, Shape{outputs, w.size(0), w.size(1), channels}, {}},
                              constant_bytes(DType::i8, dense));
  out.add(tosa::op::conv2d, inputs, node.attrs, graph[node.outputs[0]].type, node.loc, node.outputs[0]);
  return true;
}

// With several outputs per channel Vela turns the results with seven transposes; with few channels the multiplications
// by zero cost less.
void multipliers_as_dense(Graph& graph, std::int64_t most_channels) {
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const Shape w = node.op == tosa::op::depthwise_conv2d ? graph[node.inputs[1]].type.shape : Shape{};  // H W C M
    const bool dear = w.rank() == 4 && w.size(3) > 1 && w.size(2) > 1 && w.size(2) <= most_channels;
    if (!dear || !depthwise_as_dense(out, graph, node)) out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
