// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/definitions/bounds.h"
#include "ops/definitions/rows_by_index.h"

namespace tosaic::tosa {
namespace {

// values [N, K, C], indices [N, W] -> [N, W, C]; TOSA 1.1 has booleans, and indices of 64 bits
std::vector<TensorType> infer(const View& view) {
  const Shape &values = view.in(0).shape, &indices = view.in(1).shape;
  Shape shape(std::vector<Dim>{values[0], indices[1], values[2]});
  return {{view.in(0).dtype, std::move(shape), std::nullopt}};
}

Check check(const View& view) {
  const Dim batches = view.in(0).shape[0], given = view.in(1).shape[0];
  if (batches != given)
    return broken("gather.batch", "values has {} batches, indices has {}", to_string(batches), to_string(given));
  return std::nullopt;
}

Status eval(const Run& run) {
  const Shape& values = run.in[0].type.shape;
  const std::int64_t rows = values.size(1), width = run.in[1].type.shape.size(1);
  const std::size_t bytes = static_cast<std::size_t>(values.size(2)) * storage_size(run.in[0].type.dtype);
  const auto* from = static_cast<const std::byte*>(run.in[0].data);
  auto* to = static_cast<std::byte*>(run.out[0].data);
  for (std::int64_t i = 0; i < values.size(0) * width; ++i, to += bytes) {
    const std::int64_t row = element_as_integer(run.in[1].type.dtype, run.in[1].data, static_cast<std::size_t>(i));
    if (row < 0 || row >= rows) return unpredictable(run, fmt::format("index {} is outside 0..{}", row, rows - 1));
    std::memcpy(to, from + static_cast<std::size_t>(i / width * rows + row) * bytes, bytes);
  }
  return {};
}
}  // namespace

Op tosa_gather() {
  using enum DType;
  return {
      .name = "gather",
      .schema_number = 62,
      .spirv_number = 61,
      .summary = "picks rows of each batch by index",
      .inputs = {{"values", "in_out", 3, 3}, {"indices", "index", 2, 2}},
      .attrs = {},
      .outputs = {{"output", "in_out", 3, 3}},
      .types = rows_by_index("in_out"),
      .infer = infer,
      .check = check,
      .eval = eval,
      .moves = Moves::chosen,
      .bounds = bounds::first,
      .in_1_0 = in_older_types,
      .in_core_aten =
          [](const View&, CoreAten& calls) {
            const ValueId x = calls.operand(0);
            return calls.gives(aten::op::gather, {x, row_indices(calls)}, {{"dim", std::int64_t{1}}});
          },
  };
}
}  // namespace tosaic::tosa
