// SPDX-License-Identifier: Apache-2.0
#include "cpu/elementwise/reduce.h"

#include <algorithm>
#include <cstring>

#include "cpu/elementwise/block.h"
#include "cpu/elementwise/reduce_rows.h"
#include "ir/tosa_operators.h"

namespace tosaic::cpu {
namespace {

constexpr std::int64_t elements_per_task = 16384;

// [outer, length, inner] to [outer, 1, inner].
struct Reduction {
  std::int64_t outer = 1, length = 1, inner = 1;
  std::int64_t size = 1;  // bytes of an element
  ValueId input = no_value, output = no_value;
  BlockKernel combine = nullptr;
  RowsReducer rows = nullptr;  // of rows that need no turn to be folded
  BlockConstants none;
  std::int64_t columns = 1;  // inner elements of one task
  std::int64_t tasks_per_row = 1, rows_per_task = 1;
  bool fold = false;
  std::size_t half_bytes = 0;

  // Long rows: a running result per column.
  void accumulate(const std::byte* in, std::int64_t first, std::int64_t count, std::byte* out,
                  std::byte* scratch) const {
    const std::byte* from = in + first * size;
    if (length == 1) return void(std::memcpy(out, from, static_cast<std::size_t>(count * size)));
    const void* result = from;
    for (std::int64_t k = 1; k < length; ++k) {
      void* to = k + 1 == length ? out : scratch + (k % 2) * static_cast<std::int64_t>(half_bytes);
      combine({count, 0, {result, from + k * inner * size}, to, &none});
      result = to;
    }
  }
  // Short rows: the upper half onto the lower one until one is left; pairwise sums are also the more accurate.
  void fold_row(const std::byte* in, std::byte* out, std::byte* scratch) const {
    const std::byte* from = in;
    std::int64_t left = length, turn = 0;
    while (left > 1) {
      const std::int64_t half = left / 2;
      std::byte* to = left == 2 ? out : scratch + turn * static_cast<std::int64_t>(half_bytes);
      combine({half * inner, 0, {from, from + half * inner * size}, to, &none});
      if (left % 2)
        std::memcpy(to + half * inner * size, from + 2 * half * inner * size, static_cast<std::size_t>(inner * size));
      from = to;
      left = half + left % 2;
      turn = 1 - turn;
    }
    if (length == 1) std::memcpy(out, in, static_cast<std::size_t>(inner * size));
  }

  // Some of outer x tasks_per_row.
  void run_units(const Frame& frame, std::int64_t begin, std::int64_t end, std::byte* scratch) const {
    const auto* in = static_cast<const std::byte*>(frame.read(input));
    auto* out = static_cast<std::byte*>(frame.write(output));
    const std::int64_t row = length * inner;
    if (rows) return rows(in + begin * row * size, end - begin, row, out + begin * size);
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t o = unit / tasks_per_row, first = unit % tasks_per_row * columns;
      const std::byte* from = in + o * row * size;
      std::byte* to = out + o * inner * size;
      if (fold)
        fold_row(from, to, scratch);
      else
        accumulate(from, first, std::min(columns, inner - first), to + first * size, scratch);
    }
  }
};

BlockKernel combining(const Node& node, DType type) {
  const bool ignore = node.attrs.get_or<std::string>("nan_mode", "propagate") == "ignore";
  if (node.op == tosa::op::reduce_sum) return block_kernel({.op = tosa::op::add, .in = type, .out = type});
  if (node.op == tosa::op::reduce_product) return block_kernel({.op = tosa::op::mul, .in = type, .out = type});
  if (node.op == tosa::op::reduce_max)
    return block_kernel({.op = tosa::op::maximum, .in = type, .out = type, .ignore_nan = ignore});
  if (node.op == tosa::op::reduce_min)
    return block_kernel({.op = tosa::op::minimum, .in = type, .out = type, .ignore_nan = ignore});
  if (node.op == tosa::op::reduce_all) return block_kernel({.op = tosa::op::logical_and, .in = type, .out = type});
  if (node.op == tosa::op::reduce_any) return block_kernel({.op = tosa::op::logical_or, .in = type, .out = type});
  return nullptr;
}

}  // namespace

bool take_reduction(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const DType type = node.inputs.empty() ? DType::f64 : planning.type(node.inputs[0]).dtype;
  if (!tosa::is_reduction(node.op) || type == DType::f16 || type == DType::bf16) return false;
  auto r = std::make_shared<Reduction>();
  r->combine = combining(node, type);
  if (!r->combine) return false;
  const Shape& shape = planning.type(node.inputs[0]).shape;
  const auto axis = static_cast<int>(node.attrs.get<std::int64_t>("axis"));
  for (int d = 0; d < shape.rank(); ++d) (d < axis ? r->outer : d == axis ? r->length : r->inner) *= shape.size(d);
  r->size = static_cast<std::int64_t>(storage_size(type));
  r->input = node.inputs[0];
  r->output = node.outputs[0];
  r->fold = r->inner < 32;
  if (r->inner == 1) r->rows = rows_reducer(node.op, type);
  const std::int64_t row = r->length * r->inner;
  if (r->fold) {
    r->half_bytes = align_up(static_cast<std::size_t>((r->length / 2 + 1) * r->inner * r->size));
    r->rows_per_task = std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, row));
  } else {
    r->columns = std::min<std::int64_t>(r->inner, 1024);
    r->tasks_per_row = (r->inner + r->columns - 1) / r->columns;
    r->half_bytes = align_up(static_cast<std::size_t>(r->columns * r->size));
    r->rows_per_task = std::max<std::int64_t>(1, elements_per_task / std::max<std::int64_t>(1, r->length * r->columns));
  }
  Step step{.kernel = "reduction", .nodes = {n}, .reads = {r->input}, .writes = {r->output}};
  step.scratch_per_thread = 2 * r->half_bytes;
  step.run = [r](const Frame& frame) -> Status {
    const std::int64_t units = r->outer * r->tasks_per_row;
    frame.pool.run((units + r->rows_per_task - 1) / r->rows_per_task, [&](std::int64_t task, int thread) {
      r->run_units(frame, task * r->rows_per_task, std::min(units, (task + 1) * r->rows_per_task),
                   frame.scratch + static_cast<std::size_t>(thread) * 2 * r->half_bytes);
    });
    return {};
  };
  if (r->inner == 1)
    step.rows = {r->outer, {}, [r](const Frame& frame, std::int64_t first, std::int64_t last, std::byte* scratch) {
                   r->run_units(frame, first, last, scratch);
                 }};
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
