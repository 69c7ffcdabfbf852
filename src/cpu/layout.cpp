// SPDX-License-Identifier: Apache-2.0
#include "cpu/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cpu/strided_copy.h"

namespace tosaic::cpu {
namespace {

using Dims = std::vector<std::int64_t>;

Dims dense_strides(const Shape& shape) {
  Dims strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d)
    strides[static_cast<std::size_t>(d)] = strides[static_cast<std::size_t>(d) + 1] * shape[d + 1];
  return strides;
}

// One step may be several copies: one per part of a concat.
struct Layout {
  struct Part {
    ValueId from;
    StridedCopy copy;
  };
  std::vector<Part> parts;
  ValueId output = no_value;
  std::size_t output_bytes = 0;
  // PAD: every element of the output before the copy.
  bool filled = false;
  std::vector<std::byte> value;

  void fill(std::byte* to) const {
    if (std::all_of(value.begin(), value.end(), [&](std::byte b) { return b == value[0]; }))
      return void(std::memset(to, static_cast<int>(value[0]), output_bytes));
    std::memcpy(to, value.data(), value.size());
    for (std::size_t done = value.size(); done < output_bytes;) {
      const std::size_t run = std::min(done, output_bytes - done);
      std::memcpy(to + done, to, run);
      done += run;
    }
  }
};

Layout::Part whole(const Planning& planning, ValueId from, ValueId to) {
  Layout::Part part{from, {}};
  const TensorType& type = planning.type(from);
  part.copy.element = storage_size(type.dtype);
  part.copy.dims = type.shape.dims();
  part.copy.from_stride = dense_strides(type.shape);
  part.copy.to_stride = dense_strides(planning.type(to).shape);
  return part;
}

// CONCAT on the outermost dim that is not 1: a part is a piece of the output, and is computed there when nobody
// else has a claim on where it lies.
bool place_inside(Planning& planning, ValueId part, ValueId whole, std::int64_t offset_bytes) {
  if (planning.producer[part] < 0 || planning.visible[part]) return false;
  for (const Alias& alias : planning.aliases)
    if (alias.alias == part) return false;
  for (ValueId output : planning.graph.outputs)
    if (output == whole) return false;  // written straight into the caller's memory, any alignment
  planning.aliases.push_back({part, whole, static_cast<std::size_t>(offset_bytes)});
  return true;
}

bool describe(Planning& planning, const Node& node, Layout& layout) {
  const Graph& graph = planning.graph;
  layout.output = node.outputs[0];
  const Shape& out = planning.type(layout.output).shape;
  auto integers = [&](std::size_t operand) { return tosa::View(graph, node).constant_integers(operand); };
  if (node.op == "tosa.concat") {
    const auto axis = static_cast<std::size_t>(node.attrs.get<std::int64_t>("axis"));
    const Dims strides = dense_strides(out);
    const auto element = static_cast<std::int64_t>(storage_size(planning.type(layout.output).dtype));
    const bool contiguous =
        std::all_of(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(axis), [](auto d) { return d == 1; });
    std::int64_t at = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      const std::int64_t offset = at * strides[axis];
      at += planning.type(v).shape[static_cast<int>(axis)];
      const bool once = std::count(node.inputs.begin(), node.inputs.end(), v) == 1;
      if (contiguous && once && offset * element % 64 == 0 &&
          place_inside(planning, v, layout.output, offset * element))
        continue;
      Layout::Part part = whole(planning, v, layout.output);
      part.copy.to_offset = offset;
      layout.parts.push_back(std::move(part));
    }
    return true;
  }
  Layout::Part part = whole(planning, node.inputs[0], layout.output);
  StridedCopy& copy = part.copy;
  const Shape& in = planning.type(node.inputs[0]).shape;
  if (node.op == "tosa.transpose") {
    const auto& permutation = node.attrs.get<Dims>("perms");
    const Dims strides = copy.from_stride;
    for (std::size_t d = 0; d < permutation.size(); ++d) {
      copy.dims[d] = out[static_cast<int>(d)];
      copy.from_stride[d] = strides[static_cast<std::size_t>(permutation[d])];
    }
  } else if (node.op == "tosa.slice") {
    const auto start = integers(1);
    if (!start) return false;
    copy.dims = out.dims();
    for (std::size_t d = 0; d < start->size(); ++d) copy.from_offset += (*start)[d] * copy.from_stride[d];
  } else if (node.op == "tosa.reverse") {
    const auto axis = static_cast<std::size_t>(node.attrs.get<std::int64_t>("axis"));
    copy.from_offset = (copy.dims[axis] - 1) * copy.from_stride[axis];
    copy.from_stride[axis] = -copy.from_stride[axis];
  } else if (node.op == "tosa.tile") {
    // Each dim becomes two: how often, and the dim itself.
    StridedCopy tiled = copy;
    tiled.dims.clear(), tiled.from_stride.clear(), tiled.to_stride.clear();
    for (std::size_t d = 0; d < copy.dims.size(); ++d) {
      const std::int64_t size = copy.dims[d];
      tiled.dims.insert(tiled.dims.end(), {out[static_cast<int>(d)] / size, size});
      tiled.from_stride.insert(tiled.from_stride.end(), {0, copy.from_stride[d]});
      tiled.to_stride.insert(tiled.to_stride.end(), {copy.to_stride[d] * size, copy.to_stride[d]});
    }
    copy = std::move(tiled);
  } else if (node.op == "tosa.pad") {
    const auto padding = integers(1);
    if (!padding || !planning.constant(node.inputs[2])) return false;
    for (int d = 0; d < in.rank(); ++d)
      copy.to_offset += (*padding)[2 * static_cast<std::size_t>(d)] * copy.to_stride[static_cast<std::size_t>(d)];
    const Bytes& value = graph[node.inputs[2]].constant;
    layout.filled = true;
    layout.value.assign(value.data(), value.data() + copy.element);
  } else {
    return false;
  }
  layout.parts.push_back(std::move(part));
  return true;
}

}  // namespace

bool take_layout(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.outputs.size() != 1 || node.inputs.empty()) return false;
  auto layout = std::make_shared<Layout>();
  if (!describe(planning, node, *layout)) return false;
  layout->output_bytes = planning.type(layout->output).storage_bytes();
  Step step{.kernel = "layout", .nodes = {n}, .writes = {layout->output}};
  // Parts that already lie in place are read here too: they must live until now.
  for (ValueId v : node.inputs)
    if (v != no_value) step.reads.push_back(v);
  for (Layout::Part& part : layout->parts) part.copy.simplify();
  step.run = [layout](const Frame& frame) -> Status {
    auto* to = static_cast<std::byte*>(frame.write(layout->output));
    if (layout->filled) layout->fill(to);
    for (const Layout::Part& part : layout->parts)
      part.copy.run(static_cast<const std::byte*>(frame.read(part.from)), to, frame.pool);
    return {};
  };
  planning.add(std::move(step));
  return true;
}

bool take_gather(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != "tosa.gather") return false;
  const Shape &values = planning.type(node.inputs[0]).shape, &indices = planning.type(node.inputs[1]).shape;
  const std::int64_t batch = values[0], count = values[1], width = indices[1];
  const std::int64_t bytes = values[2] * static_cast<std::int64_t>(storage_size(planning.type(node.inputs[0]).dtype));
  Step step{.kernel = "gather", .nodes = {n}, .reads = {node.inputs[0], node.inputs[1]}, .writes = {node.outputs[0]}};
  step.run = [=, from = node.inputs[0], which = node.inputs[1], to = node.outputs[0]](const Frame& frame) -> Status {
    const auto* in = static_cast<const std::byte*>(frame.read(from));
    const auto* index = static_cast<const std::int32_t*>(frame.read(which));
    auto* out = static_cast<std::byte*>(frame.write(to));
    for (std::int64_t i = 0; i < batch * width; ++i) {
      const std::int64_t k = index[i];
      if (k < 0 || k >= count)
        return error("tosa.unpredictable", fmt::format("gather: index {} is outside 0..{}", k, count - 1));
      std::memcpy(out + i * bytes, in + (i / width * count + k) * bytes, static_cast<std::size_t>(bytes));
    }
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
