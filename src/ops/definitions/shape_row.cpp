// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/shape_row.h"

namespace tosaic::tosa {

Check same_lengths(const View& view) {
  for (std::size_t i = 1; i < view.inputs(); ++i)
    if (view.in(i).shape.sizes() != view.in(0).shape.sizes())
      return broken(fmt::format("{}.length", view.node().op.base()), "the operands hold {} and {} sizes",
                    to_string(view.in(0).shape), to_string(view.in(i).shape));
  return std::nullopt;
}

Op shape_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::size_t operands,
             Status (*eval)(const Run&)) {
  Op op{.name = name,
        .schema_number = schema_number,
        .spirv_number = 0xffff,
        .summary = summary,
        .outputs = {{"output", "shape", 1, 1}},
        .types = {{{Feature::shape}, {}}},
        .newer = true,
        .infer = same_as_input,
        .check = same_lengths,
        .eval = eval};
  for (const std::string_view operand : {"input1", "input2"})
    if (op.inputs.size() < operands) op.inputs.push_back({operand, "shape", 1, 1});
  return op;
}

Status store_size(const Run& run, std::size_t i, Size size) {
  if (!size) return unpredictable(run, fmt::format("size {} cannot be computed of these operands", i));
  store_integer(DType::shape, run.out[0].data, i, *size);
  return {};
}

}  // namespace tosaic::tosa
