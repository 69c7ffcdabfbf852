// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/row.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View& view) {
  std::int64_t sizes = 0;
  for (std::size_t i = 0; i < view.inputs(); ++i) sizes += view.in(i).shape.size(0);
  return {{DType::shape, {sizes}, std::nullopt}};
}

Check check(const View& view) {
  if (view.inputs() == 0) return broken("concat_shape.operands", "concat_shape has no operand");
  for (std::size_t i = 0; i < view.inputs(); ++i)
    if (view.in(i).shape.size(0) == 0) return broken("concat_shape.empty", "operand {} holds no size", i);
  return std::nullopt;
}

Status eval(const Run& run) {
  std::size_t n = 0;
  for (const TensorView& in : run.in)
    for (const std::int64_t size : integers_of(in)) store_integer(DType::shape, run.out[0].data, n++, size);
  return {};
}
}  // namespace

Op tosa_concat_shape() {
  return {.name = "concat_shape",
          .schema_number = 80,
          .spirv_number = 0xffff,
          .summary = "shapes one after the other, as one",
          .inputs = {{.name = "input", .type = "shape", .min_rank = 1, .max_rank = 1, .list = true}},
          .outputs = {{"output", "shape", 1, 1}},
          .types = {{{Feature::shape}, {}}},
          .newer = true,
          .infer = infer,
          .check = check,
          .eval = eval};
}
}  // namespace tosaic::tosa
