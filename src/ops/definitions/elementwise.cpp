// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (int i = 0; i < std::min(a.rank(), b.rank()); ++i)
    if (a[i] == 1) shape.set(i, b[i]);
  return shape;
}
std::vector<TensorType> infer_broadcast(const View& view) {
  Shape shape = broadcast_shape(view.in(0).shape, view.in(1).shape);
  return {TensorType{view.in(0).dtype, std::move(shape), std::nullopt}};
}
std::vector<TensorType> infer_comparison(const View& view) { return {infer_broadcast(view)[0].with(DType::boolean)}; }

Check check_broadcast(const View& view, std::size_t count) {
  const std::string_view op = view.node().op.base();
  Shape shape = view.in(0).shape;
  for (std::size_t k = 1; k < count; ++k) {
    const Shape& other = view.in(k).shape;
    if (other.rank() != shape.rank())
      return broken(fmt::format("{}.rank-mismatch", op), "operands of {} have ranks {} and {}, TOSA wants equal ranks",
                    op, view.in(0).rank(), other.rank());
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] != other[i] && shape[i] != 1 && other[i] != 1)
        return broken(fmt::format("{}.broadcast", op),
                      "shapes [{}] and [{}] of {} do not broadcast: dim {} is {} and {}", to_string(shape),
                      to_string(other), op, i, to_string(shape[i]), to_string(other[i]));
    shape = broadcast_shape(shape, other);
  }
  return std::nullopt;
}

// Every elementwise operator has an instruction of the same name, numbered one below the schema's.
Op unary_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::string_view operand,
             std::vector<TypeRow> types, Status (*eval)(const Run&)) {
  return {.name = name,
          .schema_number = schema_number,
          .spirv_number = static_cast<std::uint16_t>(schema_number - 1),
          .summary = summary,
          .inputs = {{operand, "in_out"}},
          .outputs = {{"output", "in_out"}},
          .types = std::move(types),
          .infer = same_as_input,
          .eval = eval,
          .elementwise = true};
}
Op binary_row(std::string_view name, std::uint16_t schema_number, std::string_view summary, std::vector<TypeRow> types,
              Status (*eval)(const Run&)) {
  return {.name = name,
          .schema_number = schema_number,
          .spirv_number = static_cast<std::uint16_t>(schema_number - 1),
          .summary = summary,
          .inputs = {{"input1", "in_out"}, {"input2", "in_out"}},
          .outputs = {{"output", "in_out"}},
          .types = std::move(types),
          .infer = infer_broadcast,
          .check = check_binary,
          .eval = eval,
          .elementwise = true};
}

}  // namespace tosaic::tosa
