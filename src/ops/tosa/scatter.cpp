// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/definitions/bounds.h"
#include "ops/definitions/rows_by_index.h"

namespace tosaic::tosa {
namespace {

// values_in [N, K, C], indices [N, W], input [N, W, C] -> values_in with the rows of input put at the indices
std::vector<TensorType> infer(const View& view) { return same_as_input(view); }

Check check(const View& view) {
  const Shape &values = view.in(0).shape, &indices = view.in(1).shape, &input = view.in(2).shape;
  if (values[0] != indices[0] || values[0] != input[0])
    return broken("scatter.batch", "values_in has {} batches, indices {}, input {}", to_string(values[0]),
                  to_string(indices[0]), to_string(input[0]));
  if (indices[1] != input[1])
    return broken("scatter.rows", "{} indices for {} rows of input", to_string(indices[1]), to_string(input[1]));
  if (values[2] != input[2])
    return broken("scatter.channels", "values_in has {} channels, input has {}", to_string(values[2]),
                  to_string(input[2]));
  return std::nullopt;
}

Status eval(const Run& run) {
  const Shape& values = run.in[0].type.shape;
  const std::int64_t rows = values.size(1), width = run.in[1].type.shape.size(1);
  const std::size_t bytes = static_cast<std::size_t>(values.size(2)) * storage_size(run.in[0].type.dtype);
  auto* to = static_cast<std::byte*>(run.out[0].data);
  std::memcpy(to, run.in[0].data, static_cast<std::size_t>(values.size(0) * rows) * bytes);
  const auto* from = static_cast<const std::byte*>(run.in[2].data);
  std::vector<char> written(static_cast<std::size_t>(values.size(0) * rows), 0);
  for (std::int64_t i = 0; i < values.size(0) * width; ++i, from += bytes) {
    const std::int64_t row = element_as_integer(run.in[1].type.dtype, run.in[1].data, static_cast<std::size_t>(i));
    if (row < 0 || row >= rows) return unpredictable(run, fmt::format("index {} is outside 0..{}", row, rows - 1));
    const auto target = static_cast<std::size_t>(i / width * rows + row);
    if (written[target]) return unpredictable(run, fmt::format("index {} is written twice", row));
    written[target] = 1;
    std::memcpy(to + target * bytes, from, bytes);
  }
  return {};
}
}  // namespace

Op tosa_scatter() {
  using enum DType;
  return {
      .name = "scatter",
      .schema_number = 63,
      .spirv_number = 62,
      .summary = "puts rows into each batch by index, each index at most once",
      .inputs = {{"values_in", "in_out", 3, 3}, {"indices", "index", 2, 2}, {"input", "in_out", 3, 3}},
      .attrs = {},
      .outputs = {{"values_out", "in_out", 3, 3}},
      .types = rows_by_index("in_out"),
      .infer = infer,
      .check = check,
      .eval = eval,
      .moves = Moves::chosen,
      .bounds = bounds::first_or_third,
      .in_1_0 = in_older_types,
      .in_core_aten =
          [](const View&, CoreAten& calls) {
            const ValueId x = calls.operand(0), index = row_indices(calls);
            return calls.gives(aten::op::scatter_src, {x, index, calls.operand(2)}, {{"dim", std::int64_t{1}}});
          },
  };
}
}  // namespace tosaic::tosa
