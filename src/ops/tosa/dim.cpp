// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View&) { return {{DType::shape, {1}, std::nullopt}}; }

Status eval(const Run& run) {
  const auto axis = static_cast<int>(run.view.integer("axis"));
  store_integer(DType::shape, run.out[0].data, 0, run.in[0].type.shape.size(axis));
  return {};
}
}  // namespace

Op tosa_dim() {
  using enum DType;
  TypeRows types = any_data("in") + rows({Feature::int4}, "in", {i4}) + rows({Feature::int16}, "in", {i48});
  for (TypeRow& row : types) row.and_needs = Feature::shape;
  return {.name = "dim",
          .schema_number = 79,
          .spirv_number = 0xffff,
          .summary = "the size of a tensor along an axis, as a shape",
          .inputs = {{"input1", "in", 1}},
          .attrs = {{"axis", AttrKind::i32}},
          .outputs = {{"output", "shape", 1, 1}},
          .types = types,
          .newer = true,
          .infer = infer,
          .check = check_axis,
          .eval = eval};
}
}  // namespace tosaic::tosa
