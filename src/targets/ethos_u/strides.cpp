// SPDX-License-Identifier: Apache-2.0
// The multipliers take input channels in eights and kernel elements in fours: a first layer on one or three channels
// leaves most of them idle. Where it strides by s along the width, s neighbouring pixels can stand in the channels of
// one: the view (1, H, W / s, s * C) is free, the kernel becomes s times narrower, and the step along the width 1.
// Where the window does not begin at such a pixel, zeros in the weights fill the difference. A small image with few
// channels (sound) is worth padding and copying, too: then its rows go into the channels as well.
#include <optional>

#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t lanes = 8, elements_at_once = 4;
constexpr std::int64_t multipliers = 256;      // of a larger product; fewer make copies look cheaper
constexpr std::int64_t copies_of_a_pixel = 5;  // padding it, and cutting it out

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// What one output costs in multiplications, idle ones too.
std::int64_t multiplications(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return rounded_up(height * width, elements_at_once) * rounded_up(channels, lanes);
}

// One axis of a convolution whose stride goes into the channels.
struct Axis {
  std::int64_t size, kernel, stride, before, after;  // as it is
  std::int64_t shift = 0, packed_kernel = 0;         // zeros before the kernel; its length in packed pixels
};

struct Plan {
  Axis y, x;
  bool rows = false;  // the rows, too, after padding
};

std::optional<Plan> plan(const Graph& graph, const Node& node) {
  if (node.op != tosa::op::conv2d || !graph[node.inputs[1]].is_constant()) return std::nullopt;
  const auto x_zero = tosa::View(graph, node).constant_integers(3), zero = tosa::View(graph, node).constant_integers(4);
  const Shape &x = graph[node.inputs[0]].type.shape, &weight = graph[node.inputs[1]].type.shape,
              &y = graph[node.outputs[0]].type.shape;
  const auto &pad = node.attrs.get<Ints>("pad"), &stride = node.attrs.get<Ints>("stride");
  if (stride[1] < 2 || !x_zero || !zero || zero->at(0) != 0 || graph[node.inputs[1]].type.dtype != DType::i8 ||
      node.attrs.get<Ints>("dilation") != Ints{1, 1})
    return std::nullopt;
  Plan p{{x.size(1), weight.size(1), stride[0], pad[0], pad[1]},
         {x.size(2), weight.size(2), stride[1], pad[2], pad[3]}};
  const std::int64_t as_it_is = multiplications(weight.size(1), weight.size(2), x.size(3));

  // Padded so that windows begin at packed pixels, rows and columns.
  Plan both = p;
  both.rows = true;
  std::int64_t pixels = x.size(0);
  for (Axis* axis : {&both.y, &both.x}) {
    axis->packed_kernel = rounded_up(axis->kernel, axis->stride) / axis->stride;
    const std::int64_t outputs = axis == &both.y ? y.size(1) : y.size(2);
    axis->after = (outputs - 1 + axis->packed_kernel) * axis->stride - axis->size - axis->before;
    if (axis->after < 0) return std::nullopt;
    pixels *= axis->size + axis->before + axis->after;
  }
  const std::int64_t saved =
      as_it_is - multiplications(both.y.packed_kernel, both.x.packed_kernel, stride[0] * stride[1] * x.size(3));
  if (stride[0] == 2 && x.size(0) == 1 && saved * y.elements() / multipliers > copies_of_a_pixel * pixels * x.size(3))
    return both;

  Axis& w = p.x;
  const std::int64_t packed_before = rounded_up(w.before, w.stride) / w.stride;
  w.shift = packed_before * w.stride - w.before;
  w.packed_kernel = rounded_up(w.shift + w.kernel, w.stride) / w.stride;
  w.before = packed_before;
  w.after = y.size(2) - 1 + w.packed_kernel - w.size / w.stride - packed_before;
  if (w.size % w.stride != 0 || w.after < 0 ||
      multiplications(weight.size(1), w.packed_kernel, w.stride * x.size(3)) >= as_it_is)
    return std::nullopt;
  return p;
}

// OHWI weights for channels in the order row, column, channel of the pixels that are packed.
Value packed_weight(const Value& weight, const Plan& p) {
  const Shape& shape = weight.type.shape;
  const std::int64_t rows = p.rows ? p.y.stride : 1, columns = p.x.stride, depth = shape.size(3);
  const std::int64_t height = p.rows ? p.y.packed_kernel : p.y.kernel, width = p.x.packed_kernel;
  Ints integers(static_cast<std::size_t>(shape.size(0) * height * width * rows * columns * depth), 0);
  const auto from = weight.constant.as<std::int8_t>();
  std::size_t next = 0;
  for (std::int64_t o = 0; o < shape.size(0); ++o)
    for (std::int64_t y = 0; y < shape.size(1); ++y)
      for (std::int64_t x = 0; x < shape.size(2); ++x)
        for (std::int64_t c = 0; c < depth; ++c) {
          const std::int64_t column = x + p.x.shift;
          const std::int64_t pixel = (o * height + y / rows) * width + column / columns;
          const std::int64_t place = ((pixel * rows + y % rows) * columns + column % columns) * depth + c;
          integers[static_cast<std::size_t>(place)] = from[next++];
        }
  return {weight.name, weight.type.with(Shape{shape.size(0), height, width, rows * columns * depth}),
          constant_bytes(weight.type.dtype, integers)};
}

// Columns into channels is a view; rows are cut apart and concatenated in the channels.
ValueId packed_image(Rewriter& out, Graph& graph, const Node& node, const Plan& p) {
  const Shape x = graph[node.inputs[0]].type.shape;
  const std::int64_t depth = p.x.stride * x.size(3);
  if (!p.rows) return out.reshape(node.inputs[0], {x.size(0), x.size(1), x.size(2) / p.x.stride, depth}, node.loc);
  const std::int64_t height = x.size(1) + p.y.before + p.y.after, width = x.size(2) + p.x.before + p.x.after;
  const TensorType type = graph[node.inputs[0]].type;
  const ValueId zero =
      graph.add_value("zero", {type.dtype, Shape{1}, {}},
                      constant_bytes(type.dtype, tosa::View(graph, node).constant_integers(3).value()));
  // Padded with a row of pixels as the channels of one, which copies many at a time.
  const ValueId lines = out.reshape(node.inputs[0], {1, 1, x.size(1), x.size(2) * x.size(3)}, node.loc);
  const Ints amounts{0, 0, 0, 0, p.y.before, p.y.after, p.x.before * x.size(3), p.x.after * x.size(3)};
  const ValueId sides = graph.add_value("sides", {DType::shape, Shape{8}, {}}, constant_bytes(DType::shape, amounts));
  const ValueId padded =
      out.add(tosa::op::pad, {lines, sides, zero}, {}, type.with(Shape{1, 1, height, width * x.size(3)}), node.loc);
  const std::int64_t rows = height / p.y.stride, columns = width / p.x.stride;
  const ValueId view = out.reshape(padded, {1, rows, p.y.stride * columns, depth}, node.loc);
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < p.y.stride; ++i)
    parts.push_back(out.slice(view, {0, 0, i * columns, 0}, {1, rows, columns, depth}, node.loc));
  return out.add(tosa::op::concat, parts, {{"axis", std::int64_t{3}}},
                 type.with(Shape{1, rows, columns, p.y.stride * depth}), node.loc);
}

}  // namespace

void strides_into_channels(Graph& graph) {
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    if (const auto p = plan(graph, node)) {
      const Value weight = packed_weight(graph[node.inputs[1]], *p);
      node.inputs[0] = packed_image(out, graph, node, *p);
      node.inputs[1] = graph.add_value(weight.name, weight.type, weight.constant);
      node.attrs.set("pad", p->rows ? Ints{0, 0, 0, 0} : Ints{p->y.before, p->y.after, p->x.before, p->x.after});
      node.attrs.set("stride", Ints{p->rows ? 1 : p->y.stride, 1});
    }
    out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
