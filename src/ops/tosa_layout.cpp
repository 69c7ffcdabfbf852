// SPDX-License-Identifier: Apache-2.0
#include "ops/tosa_layout.h"

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
          .shape_only_transparent = true};
}

Status copy_along(const Run& run, const Walk& from) {
  const TensorType& out = run.out[0].type;
  copy_elements(out.shape, storage_size(out.dtype), run.in[0].data, from, run.out[0].data, row_major(out.shape));
  return {};
}

}  // namespace tosaic::tosa
