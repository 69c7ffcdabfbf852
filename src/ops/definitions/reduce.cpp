// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {

AxisView along(const Shape& shape, std::int64_t axis) {
  AxisView view;
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? view.outer : i == axis ? view.size : view.inner) *= shape.size(i);
  return view;
}

std::vector<TensorType> infer_reduction(const View& view) {
  Shape shape = view.in(0).shape;
  shape.set(static_cast<int>(view.integer("axis")), 1);
  return {TensorType{view.in(0).dtype, std::move(shape), std::nullopt}};
}

Op reduction_row(std::string_view name, std::uint16_t schema_number, std::string_view summary,
                 std::vector<TypeRow> types, Status (*eval)(const Run&)) {
  return {.name = name,
          .schema_number = schema_number,
          .spirv_number = static_cast<std::uint16_t>(schema_number - 1),
          .summary = summary,
          .inputs = {{"input", "in_out", 1}},
          .attrs = {{"axis", AttrKind::i32}},
          .outputs = {{"output", "in_out", 1}},
          .types = std::move(types),
          .infer = infer_reduction,
          .check = check_axis,
          .eval = eval,
          .accumulates = true};
}

}  // namespace tosaic::tosa
