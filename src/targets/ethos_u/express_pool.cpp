// SPDX-License-Identifier: Apache-2.0
// Pools and depthwise convolutions with long strides; averages over windows that are too large, or whose padding the
// device cannot leave out.
#include <algorithm>
#include <numeric>

#include "ir/tosa_operators.h"
#include "ops/definitions/scaling.h"
#include "targets/ethos_u/express.h"

namespace tosaic::ethos_u {
namespace {

constexpr std::int64_t longest_stride = 3, most_zones = 64;

// Windows side by side along one axis of (outer, size, inner): the maximum of each in one pass of width 1.
ValueId maximum_of_groups(Words& say, const Node& node, ValueId x, const Ints& view, std::int64_t k) {
  const ValueId groups = say.reshape(x, view);
  Attrs attrs = node.attrs;
  attrs.set("kernel", Ints{1, k});
  attrs.set("stride", Ints{1, 1});
  return say.out.add(node.op, {groups}, std::move(attrs), say.type(groups).with(Shape{1, view[1], 1, view[3]}),
                     node.loc);
}

bool maximum_side_by_side(Words& say, const Node& node) {
  const auto &kernel = node.attrs.get<Ints>("kernel"), &pad = node.attrs.get<Ints>("pad");
  const Shape x = say.type(node.inputs[0]).shape, y = say.type(node.outputs[0]).shape;
  if (kernel != node.attrs.get<Ints>("stride") || pad != Ints{0, 0, 0, 0} || y.size(2) * x.size(3) > longest_axis)
    return false;
  ValueId v = maximum_of_groups(say, node, node.inputs[0], {1, x.size(0) * x.size(1) * y.size(2), kernel[1], x.size(3)},
                                kernel[1]);
  v = maximum_of_groups(say, node, v, {1, x.size(0) * y.size(1), kernel[0], y.size(2) * x.size(3)}, kernel[0]);
  say.reshape(v, y.sizes(), node.outputs[0]);
  return true;
}

std::int64_t native_part(std::int64_t stride) {
  for (std::int64_t s = longest_stride; s > 1; --s)
    if (stride % s == 0) return s;
  return 1;
}

// First output row (or column) of a window that begins inside, and how far each window's real part reaches.
struct Zone {
  std::int64_t first, count;  // outputs
  std::int64_t begin, size;   // of the first window's real part, in inputs
};

// Outputs whose windows have real parts of the same kind: one zone for those wholly inside, one for each at a border.
std::vector<Zone> zones_of(std::int64_t outputs, std::int64_t inputs, std::int64_t kernel, std::int64_t stride,
                           std::int64_t pad) {
  std::vector<Zone> zones;
  for (std::int64_t o = 0; o < outputs; ++o) {
    const std::int64_t start = o * stride - pad, begin = std::max<std::int64_t>(start, 0),
                       end = std::min(start + kernel, inputs);
    const bool inside = begin == start && end == start + kernel;
    if (inside && !zones.empty() && zones.back().size == kernel)
      ++zones.back().count;
    else
      zones.push_back({o, 1, begin, end - begin});
  }
  return zones;
}

}  // namespace

// A stride of a * b is a stride of a of which every b-th result is kept, where a is a stride that the device has.
bool long_stride_in_two_steps(Rewriter& out, Graph& graph, const Node& node) {
  const bool maximum = node.op == tosa::op::max_pool2d;
  if (!maximum && node.op != tosa::op::depthwise_conv2d) return false;
  Words say{out, graph, node.loc};
  const Ints stride = node.attrs.get<Ints>("stride");
  if (std::max(stride[0], stride[1]) <= longest_stride) return false;
  if (maximum && maximum_side_by_side(say, node)) return true;
  const TensorType result = graph[node.outputs[0]].type;
  Ints pad = node.attrs.get<Ints>("pad"), native = stride;
  Shape shape = result.shape;
  ValueId x = node.inputs[0];
  const DType dtype = graph[x].type.dtype;
  // What is behind the last window does not matter: it is dropped. A pool's own padding must be below its kernel.
  const ValueId lowest = say.integers(dtype, {range_of(dtype).lowest});
  for (int axis = 0; axis < 2; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (stride[a] <= longest_stride) continue;
    native[a] = native_part(stride[a]);
    const std::int64_t more = stride[a] - native[a];
    if (maximum)
      x = say.pad(x, 1 + axis, pad[2 * a], pad[2 * a + 1] + more, lowest), pad[2 * a] = pad[2 * a + 1] = 0;
    else
      pad[2 * a + 1] += more;
    shape.set(1 + axis, shape[1 + axis] * (stride[a] / native[a]));
  }
  std::vector<ValueId> inputs = node.inputs;
  inputs[0] = x;
  Attrs attrs = node.attrs;
  attrs.set("pad", pad);
  attrs.set("stride", native);
  ValueId y = out.add(node.op, inputs, std::move(attrs), result.with(shape), node.loc);
  y = say.every(y, 2, stride[1] / native[1]);
  y = say.every(y, 1, stride[0] / native[0]);
  say.reshape(y, result.shape.sizes(), node.outputs[0]);
  return true;
}

// Averages of what the windows really cover, zone by zone: within one, all windows have the same size and no padding.
bool average_by_zones(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::avg_pool2d) return false;
  const Ints kernel = node.attrs.get<Ints>("kernel"), stride = node.attrs.get<Ints>("stride"),
             pad = node.attrs.get<Ints>("pad");
  if (pad == Ints{0, 0, 0, 0}) return false;
  Words say{out, graph, node.loc};
  const TensorType x = graph[node.inputs[0]].type, y = graph[node.outputs[0]].type;
  const auto rows = zones_of(y.shape.size(1), x.shape.size(1), kernel[0], stride[0], pad[0]),
             columns = zones_of(y.shape.size(2), x.shape.size(2), kernel[1], stride[1], pad[2]);
  if (static_cast<std::int64_t>(rows.size() * columns.size()) > most_zones) return false;
  std::vector<ValueId> bands;
  for (const Zone& r : rows) {
    const ValueId band = say.slice(node.inputs[0], 1, r.begin, (r.count - 1) * stride[0] + r.size);
    std::vector<ValueId> parts;
    for (const Zone& c : columns) {
      const ValueId part = say.slice(band, 2, c.begin, (c.count - 1) * stride[1] + c.size);
      Attrs attrs = node.attrs;
      attrs.set("kernel", Ints{r.size, c.size});
      attrs.set("pad", Ints{0, 0, 0, 0});
      attrs.set("stride", Ints{r.count == 1 ? 1 : stride[0], c.count == 1 ? 1 : stride[1]});
      parts.push_back(out.add(node.op, {part, node.inputs[1], node.inputs[2]}, std::move(attrs),
                              y.with(Shape{x.shape.size(0), r.count, c.count, x.shape.size(3)}), node.loc));
    }
    bands.push_back(say.concat(parts, 2));
  }
  say.concat(bands, 1, node.outputs[0]);
  return true;
}

// Windows side by side (or one window) as sums along one axis after the other, and the multiplication that TOSA says an
// average is.
bool average_as_sums(Rewriter& out, Graph& graph, const Node& node) {
  if (node.op != tosa::op::avg_pool2d) return false;
  const Ints kernel = node.attrs.get<Ints>("kernel"), stride = node.attrs.get<Ints>("stride");
  const TensorType x = graph[node.inputs[0]].type, y = graph[node.outputs[0]].type;
  if (node.attrs.get<Ints>("pad") != Ints{0, 0, 0, 0}) return false;
  for (int axis = 0; axis < 2; ++axis)
    if (y.shape.size(1 + axis) > 1 && kernel[static_cast<std::size_t>(axis)] != stride[static_cast<std::size_t>(axis)])
      return false;
  Words say{out, graph, node.loc};
  const std::int64_t channels = x.shape.size(3);
  const ValueId none = say.integers(DType::i32, {0});
  ValueId v = say.rescale(node.inputs[0], DType::i32, std::int64_t{1} << 30, 30, node.inputs[1], none);
  v = say.sum(say.reshape(v, {1, x.shape.size(0) * y.shape.size(1), kernel[0], x.shape.size(2) * channels}), 2);
  v = say.sum(say.reshape(v, {1, x.shape.size(0) * y.shape.size(1) * y.shape.size(2), kernel[1], channels}), 2);
  const auto scale = tosa::reciprocal_scale(static_cast<std::uint32_t>(kernel[0] * kernel[1]));
  v = say.rescale(v, x.dtype, scale.multiplier, scale.shift, none, node.inputs[2]);
  say.reshape(v, y.shape.sizes(), node.outputs[0]);
  return true;
}

}  // namespace tosaic::ethos_u
