// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <numeric>

#include "ops/definitions/bounds.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/rows_by_index.h"

namespace tosaic::tosa {
namespace {

// values [N, K, C], indices [N, W], row_count R -> [N, W * R, C]
std::vector<TensorType> infer(const View& view) {
  const auto count = view.constant_integers(2);
  if (!count) return {};
  const Shape &values = view.in(0).shape, &indices = view.in(1).shape;
  Shape shape(std::vector<Dim>{values[0], indices[1] * count->front(), values[2]});
  return {{view.in(0).dtype, std::move(shape), std::nullopt}};
}

Check check(const View& view) {
  const Dim batches = view.in(0).shape[0], given = view.in(1).shape[0];
  if (batches != given)
    return broken("row_gather.batch", "values has {} batches, indices has {}", to_string(batches), to_string(given));
  if (Check c = check_length(view, 2, 1)) return c;
  const auto count = view.constant_integers(2);
  if (count && (count->front() < 1 || count->front() > std::numeric_limits<std::int32_t>::max()))
    return broken("row_gather.row-count", "row_count {} must be at least 1", count->front());
  if (count && view.in(0).shape[1].is_number() && count->front() > view.in(0).shape.size(1))
    return broken("row_gather.row-count", "row_count {} is more than the {} rows of values", count->front(),
                  view.in(0).shape.size(1));
  return std::nullopt;
}

Status eval(const Run& run) {
  const Shape& values = run.in[0].type.shape;
  const std::int64_t rows = values.size(1), width = run.in[1].type.shape.size(1);
  const std::int64_t count = integers_of(run.in[2]).front();
  const std::size_t row_bytes = static_cast<std::size_t>(values.size(2)) * storage_size(run.in[0].type.dtype);
  const std::size_t bytes = row_bytes * static_cast<std::size_t>(count);
  const auto* from = static_cast<const std::byte*>(run.in[0].data);
  auto* to = static_cast<std::byte*>(run.out[0].data);
  for (std::int64_t i = 0; i < values.size(0) * width; ++i, to += bytes) {
    const std::int64_t row = element_as_integer(run.in[1].type.dtype, run.in[1].data, static_cast<std::size_t>(i));
    if (row < 0 || row > rows - count)
      return unpredictable(run, fmt::format("index {} with {} rows is outside 0..{}", row, count, rows - 1));
    std::memcpy(to, from + static_cast<std::size_t>(i / width * rows + row) * row_bytes, bytes);
  }
  return {};
}

// GATHER by the index of every row.
std::vector<ValueId> in_1_0(extension::Definition& d) {
  const Shape result = d.result().shape, given = d.type(d.operand(1)).shape;
  const std::int64_t width = given.size(1), count = result.size(1) / width;
  ValueId indices = narrow_indices(d, d.operand(1));
  if (count > 1) {
    std::vector<double> steps(static_cast<std::size_t>(count));
    std::iota(steps.begin(), steps.end(), 0.0);
    const Shape each{given.size(0), width, count};
    const ValueId first = d.shaped(indices, {given.size(0), width, 1});
    const ValueId further = d.constant(DType::i32, {1, 1, count}, steps);
    const ValueId all = d.call(op::add, {first, further}, {DType::i32, each, {}});
    indices = d.shaped(all, {given.size(0), width * count});
  }
  const bool boolean = d.result().dtype == DType::boolean;
  const ValueId values = boolean ? d.cast(d.operand(0), DType::i8) : d.operand(0);
  const ValueId made = d.call(op::gather, {values, indices}, d.result().with(d.type(values).dtype));
  return {boolean ? d.cast(made, DType::boolean) : made};
}
}  // namespace

Op tosa_row_gather() {
  return {
      .name = "row_gather",
      .schema_number = 99,
      .spirv_number = 0xffff,
      .summary = "picks runs of rows of each batch by the index of the first",
      .inputs = {{"values", "in_out", 3, 3},
                 {"indices", "index", 2, 2},
                 {.name = "row_count", .type = "i32", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {},
      .outputs = {{"output", "in_out", 3, 3}},
      .types = rows_by_index("in_out"),
      .newer = true,
      .infer = infer,
      .check = check,
      .eval = eval,
      .moves = Moves::chosen,
      .bounds = bounds::first,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
