// SPDX-License-Identifier: Apache-2.0
#include "cpu/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "cpu/layout/strided_copy.h"
#include "ir/tosa_operators.h"
#include "plan/movement.h"

namespace tosaic::cpu {
namespace {

// One step may be several copies: one per part of a concat.
struct Layout {
  struct Part {
    ValueId from;
    StridedCopy copy;
  };
  std::vector<Part> parts;
  ValueId output = no_value;
  std::size_t output_bytes = 0;
  std::vector<std::byte> value;  // PAD: every element of the output before the copy

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

// A part that is a piece of the output is computed there when nobody else has a claim on where it lies.
bool place_inside(Planning& planning, const plan::Move& move, ValueId output) {
  const std::size_t offset = static_cast<std::size_t>(move.write.offset) * storage_size(planning.type(output).dtype);
  if (!move.is_dense_part() || offset % 64 != 0) return false;
  if (planning.producer[move.from] < 0 || planning.visible[move.from]) return false;
  for (const plan::Alias& alias : planning.aliases)
    if (alias.alias == move.from) return false;
  for (ValueId o : planning.graph.outputs)
    if (o == output) return false;  // written straight into the caller's memory, any alignment
  planning.aliases.push_back({move.from, output, offset});
  return true;
}

StridedCopy copy_of(const plan::Move& move, std::size_t element) {
  StridedCopy copy{.dims = move.dims,
                   .from_stride = move.read.strides,
                   .to_stride = move.write.strides,
                   .from_offset = move.read.offset,
                   .to_offset = move.write.offset,
                   .element = element};
  copy.simplify();
  return copy;
}

}  // namespace

bool take_layout(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const auto movement = plan::movement_of(planning.graph, node);
  if (!movement) return false;
  auto layout = std::make_shared<Layout>();
  layout->output = node.outputs[0];
  const TensorType& type = planning.type(layout->output);
  const std::size_t element = storage_size(type.dtype);
  layout->output_bytes = type.storage_bytes();
  if (movement->fill != no_value) {
    const Bytes& value = planning.graph[movement->fill].constant;
    layout->value.assign(value.data(), value.data() + element);
  }
  for (const plan::Move& move : movement->moves) {
    const bool once = std::count(node.inputs.begin(), node.inputs.end(), move.from) == 1;
    const bool concat = movement->moves.size() > 1;
    if (!(concat && once && place_inside(planning, move, layout->output)))
      layout->parts.push_back({move.from, copy_of(move, element)});
  }
  Step step{.kernel = "layout", .nodes = {n}, .writes = {layout->output}};
  // Parts that already lie in place are read here too: they must live until now.
  for (ValueId v : node.inputs)
    if (v != no_value) step.reads.push_back(v);
  step.run = [layout](const Frame& frame) -> Status {
    auto* to = static_cast<std::byte*>(frame.write(layout->output));
    if (!layout->value.empty()) layout->fill(to);
    for (const Layout::Part& part : layout->parts)
      part.copy.run(static_cast<const std::byte*>(frame.read(part.from)), to, frame.pool);
    return {};
  };
  planning.add(std::move(step));
  return true;
}

bool take_gather(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::gather) return false;
  const Shape &values = planning.type(node.inputs[0]).shape, &indices = planning.type(node.inputs[1]).shape;
  const std::int64_t batch = values.size(0), count = values.size(1), width = indices.size(1);
  const std::int64_t bytes =
      values.size(2) * static_cast<std::int64_t>(storage_size(planning.type(node.inputs[0]).dtype));
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
