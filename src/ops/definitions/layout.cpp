// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/layout.h"

#include "base/parallel.h"

namespace tosaic::tosa {

Scales channels_taken(const Scales& scales, const std::vector<std::int64_t>& taken) {
  Scales result = scales;
  result.scale.clear();
  result.zero_point.clear();
  for (std::int64_t channel : taken) {
    result.scale.push_back(scales.scale[static_cast<std::size_t>(channel)]);
    result.zero_point.push_back(scales.zero_point[static_cast<std::size_t>(channel)]);
  }
  return result;
}

Op layout_row(std::string_view name, std::uint16_t schema_number, std::string_view summary) {
  return {.name = name,
          .schema_number = schema_number,
          .spirv_number = static_cast<std::uint16_t>(schema_number - 1),
          .summary = summary,
          .inputs = {{"input1", "in_out", 1}},
          .outputs = {{"output", "in_out", 1}},
          .types = any_data("in_out"),
          .moves = Moves::all};
}

Status copy_along(const Run& run, const Walk& from) {
  const TensorType& out = run.out[0].type;
  const Walk to = row_major(out.shape);
  if (out.rank() == 0) {
    copy_elements(out.shape, storage_size(out.dtype), run.in[0].data, from, run.out[0].data, to);
    return {};
  }
  const auto rows = static_cast<std::size_t>(out.shape.size(0));
  const std::size_t grain = out.shape.elements() > 0 ? (1 << 18) / static_cast<std::size_t>(to.strides[0]) + 1 : rows;
  in_parallel(rows, grain, [&](std::size_t first, std::size_t last) {
    std::vector<std::int64_t> dims = out.shape.sizes();
    dims[0] = static_cast<std::int64_t>(last - first);
    auto at_first = [&](Walk walk) {
      walk.offset += walk.strides[0] * static_cast<std::int64_t>(first);
      return walk;
    };
    copy_elements(Shape(dims), storage_size(out.dtype), run.in[0].data, at_first(from), run.out[0].data, at_first(to));
  });
  return {};
}

}  // namespace tosaic::tosa
