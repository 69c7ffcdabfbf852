// SPDX-License-Identifier: Apache-2.0
// Sizes that inputs choose: from their shapes to the numbers of each dispatch.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"

namespace tosaic::vulkan_program {
namespace {

// `count` groups in rows that fill no more than a device takes?
bool can_be_dispatched(std::int64_t count) {
  return count >= 0 && count <= std::int64_t{row_groups} * std::int64_t{most_groups};
}

}  // namespace

std::uint32_t expression(Program& program, const Dim& dim) {
  const auto found = std::ranges::find(program.expressions, dim);
  const auto place = static_cast<std::uint32_t>(found - program.expressions.begin());
  if (found == program.expressions.end()) program.expressions.push_back(dim);
  return place;
}

std::uint32_t word_of(std::int64_t number, bool reciprocal) {
  return reciprocal ? std::bit_cast<std::uint32_t>(reciprocal_of(number)) : static_cast<std::uint32_t>(number);
}

std::array<std::uint32_t, 3> groups_of(std::uint64_t count) {
  return {static_cast<std::uint32_t>(std::min<std::uint64_t>(count, row_groups)),
          static_cast<std::uint32_t>((count + row_groups - 1) / row_groups), 1};
}

std::uint64_t bytes_in_io(const Tensor& tensor) { return largest(tensor.in_io()).storage_bytes(); }

Shape at(const Shape& shape, const Sizes& sizes) {
  if (shape.is_static()) return shape;
  std::vector<Dim> dims;
  for (const Dim& dim : shape.dims()) dims.push_back(at(dim, sizes));
  return Shape(std::move(dims));
}

Result<Sizes> sizes_of(const Program& program, std::span<const Shape> inputs) {
  Graph graph;  // of inputs alone
  for (const Tensor& t : program.inputs) graph.inputs.push_back(graph.add_value(t.name, t.type));
  Sizes sizes;
  try {
    TOSAIC_TRY(sizes, tosaic::sizes_of(graph, inputs));
  } catch (const std::exception& e) {  // as in resize
    return error("model.size", fmt::format("the program's sizes cannot be computed for these inputs: {}", e.what()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (int d = 0; d < inputs[i].rank(); ++d)
      for (const Dim& dim = program.inputs[i].type.shape[d]; const Symbol& s : dim.symbols())
        if (const auto value = sizes.find(s.name); value != sizes.end() && !s.range.contain(value->second))
          return error("model.size", fmt::format("{}.{} is {}, outside of its range {} ({})", program.inputs[i].name, d,
                                                 inputs[i].size(d), to_string(dim.bounds()), to_string(dim)))
              .hint(
                  "the range was given when the model was exported (torch.export.Dim(..., min=, max=)): export it "
                  "with a wider one");
  TOSAIC_TRY(const std::vector<Guard> open, open_guards(program.guards, sizes));
  return sizes;
}

Status check_indices(const Tensor& input, std::int64_t rows, std::span<const std::int32_t> indices) {
  const auto outside =
      std::ranges::find_if(indices, [&](std::int32_t place) { return place < input.first_row || place >= rows; });
  if (outside == indices.end()) return {};
  return error("tosa.unpredictable",
               fmt::format("input '{}': index {} is outside {}..{}", input.name, *outside, input.first_row, rows - 1));
}

Status resize(const Program& program, const Sizes& sizes, std::vector<Dispatch>& dispatches) {
  try {
    std::vector<std::int64_t> numbers;
    for (const Dim& dim : program.expressions) numbers.push_back(at(dim, sizes).value());
    for (Dispatch& d : dispatches) {
      for (const SizedPush& p : d.sizes) d.pushes[p.push] = word_of(numbers[p.expression], p.reciprocal);
      if (d.group_count == no_expression) continue;
      const std::int64_t count = numbers[d.group_count];
      if (!can_be_dispatched(count))
        return error("model.size",
                     fmt::format("{} of '{}' would have {} groups at these sizes", d.kernel, d.value, count));
      d.groups = groups_of(static_cast<std::uint64_t>(count));
    }
  } catch (const std::exception& e) {  // what the program says of sizes may be anything
    return error("model.size", fmt::format("the program's scalars cannot be computed at these sizes: {}", e.what()));
  }
  return {};
}

}  // namespace tosaic::vulkan_program
