// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/rows_by_index.h"

#include <cstring>
#include <limits>
#include <numeric>

namespace tosaic::tosa {

TypeRows rows_by_index(std::string_view variable) {
  using enum DType;
  const TypeRows older = integers(variable, {i8, i16, i32}) + fp8s(variable) + floats(variable);
  const TypeRows booleans = since_1_1(either(variable, {boolean}));
  return with(older + booleans + int64s(variable), "index", i32) +
         with(since_1_1(older) + booleans + int64s(variable), "index", i64);
}

ValueId narrow_indices(extension::Definition& d, ValueId indices) {
  if (d.type(indices).dtype != DType::i64) return indices;
  const auto limit = [&](Operator op, ValueId v, double value) {
    return d.call(op, {v, d.number(DType::i64, d.type(v).rank(), value)}, d.type(v),
                  {{"nan_mode", std::string("propagate")}});
  };
  const ValueId positive = limit(op::maximum, indices, -1);
  return d.cast(limit(op::minimum, positive, std::numeric_limits<std::int32_t>::max()), DType::i32);
}

std::vector<ValueId> in_older_types(extension::Definition& d) {
  std::vector<ValueId> operands = d.node().inputs;
  const TensorType& result = d.result();
  const bool boolean = result.dtype == DType::boolean;
  if (!boolean && d.type(operands[1]).dtype != DType::i64) return {};
  operands[1] = narrow_indices(d, operands[1]);
  if (boolean)
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (i != 1) operands[i] = d.cast(operands[i], DType::i8);
  const ValueId made = d.call(d.node().op, operands, boolean ? result.with(DType::i8) : result);
  return {boolean ? d.cast(made, DType::boolean) : made};
}

Shape run_of_rows(const Shape& values, const Shape& indices, std::int64_t count) {
  return Shape(std::vector<Dim>{values[0], indices[1] * count, values[2]});
}

Check check_runs_of_rows(const View& view, std::size_t indices, std::size_t row_count) {
  const std::string_view op = view.node().op.base();
  const Shape& values = view.in(0).shape;
  const Dim batches = values[0], given = view.in(indices).shape[0];
  if (batches != given)
    return broken(fmt::format("{}.batch", op), "values has {} batches, indices has {}", to_string(batches),
                  to_string(given));
  if (Check c = check_length(view, row_count, 1)) return c;
  const auto count = view.constant_integers(row_count);
  if (count && (count->front() < 1 || count->front() > std::numeric_limits<std::int32_t>::max()))
    return broken(fmt::format("{}.row-count", op), "row_count {} must be at least 1", count->front());
  if (count && values[1].is_number() && count->front() > values.size(1))
    return broken(fmt::format("{}.row-count", op), "row_count {} is more than the {} rows of values", count->front(),
                  values.size(1));
  return std::nullopt;
}

Status copy_runs_of_rows(const Run& run, std::size_t which, const TensorView& indices, const TensorView& row_count) {
  const Shape& values = run.in[which].type.shape;
  const std::int64_t rows = values.size(1), width = indices.type.shape.size(1);
  const std::int64_t count = integers_of(row_count).front();
  const std::size_t row_bytes = static_cast<std::size_t>(values.size(2)) * storage_size(run.in[which].type.dtype);
  const std::size_t bytes = row_bytes * static_cast<std::size_t>(count);
  const auto* from = static_cast<const std::byte*>(run.in[which].data);
  auto* to = static_cast<std::byte*>(run.out[which].data);
  for (std::int64_t i = 0; i < values.size(0) * width; ++i, to += bytes) {
    const std::int64_t row = element_as_integer(indices.type.dtype, indices.data, static_cast<std::size_t>(i));
    if (row < 0 || row > rows - count)
      return unpredictable(run, fmt::format("index {} with {} rows is outside 0..{}", row, count, rows - 1));
    std::memcpy(to, from + static_cast<std::size_t>(i / width * rows + row) * row_bytes, bytes);
  }
  return {};
}

ValueId index_of_every_row(extension::Definition& d, ValueId indices, std::int64_t rows) {
  const Shape given = d.type(indices).shape;
  const std::int64_t width = given.size(1), count = rows / width;
  indices = narrow_indices(d, indices);
  if (count == 1) return indices;
  std::vector<double> steps(static_cast<std::size_t>(count));
  std::iota(steps.begin(), steps.end(), 0.0);
  const Shape each{given.size(0), width, count};
  const ValueId first = d.shaped(indices, {given.size(0), width, 1});
  const ValueId further = d.constant(DType::i32, {1, 1, count}, steps);
  const ValueId all = d.call(op::add, {first, further}, {DType::i32, each, {}});
  return d.shaped(all, {given.size(0), rows});
}

}  // namespace tosaic::tosa
