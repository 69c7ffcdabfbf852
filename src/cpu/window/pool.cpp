// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "cpu/elementwise/block.h"
#include "cpu/elementwise/reduce.h"
#include "cpu/window/pool_kernel.h"
#include "cpu/window/window.h"
#include "ir/tosa_operators.h"

namespace tosaic::cpu {
namespace {

// AVG_POOL2D's division by the number of elements under the window, as a scale (spec "reciprocal_scale").
void set_reciprocal(BlockConstants& constants, std::int64_t count) {
  int k = 0;
  while ((std::int64_t{1} << k) < count) ++k;
  const std::int64_t numerator = ((std::int64_t{1} << 30) + 1) << k;
  constants.multiplier = {static_cast<std::int32_t>(numerator / count)};
  constants.scale_shift = {30 + k};
}

// Neighbouring pixels of an output row whose windows are equally wide, computed together.
struct Group {
  std::int64_t first = 0, count = 1;  // pixels
  std::int64_t column = 0;            // where the first one's window begins
  std::int64_t width = 0;
};

struct Pool {
  Window window;
  ValueId input = no_value, output = no_value;
  std::int64_t size = 1;         // bytes of an element
  std::int64_t joined_size = 1;  // and of one that is joined down its column
  PoolKernel down = nullptr, across = nullptr;
  std::int32_t zero_point = 0;
  BlockKernel narrow = nullptr;  // sums of integers to averages, by the number of elements
  std::map<std::int64_t, BlockConstants> by_count;
  std::vector<Group> groups;
  std::int64_t rows_per_task = 1;
  std::size_t line_bytes = 0;

  // The part of a window along dim d that is not padding: begin and end.
  std::pair<std::int64_t, std::int64_t> covered(std::size_t d, std::int64_t o) const {
    const std::int64_t begin = o * window.stride[d] - window.before[d];
    return {std::max<std::int64_t>(0, begin), std::min(window.in[d], begin + window.kernel[d])};
  }
  std::int64_t columns(const Group& group) const { return (group.count - 1) * window.stride[2] + group.width; }

  void group_pixels() {
    // What is joined down the columns stays in the first-level cache.
    const std::int64_t most_columns = 16 * 1024 / (window.channels * joined_size);
    for (std::int64_t ox = 0; ox < window.out[2]; ++ox) {
      const auto [begin, end] = covered(2, ox);
      if (!groups.empty()) {
        Group& last = groups.back();
        if (last.width == end - begin && last.column + last.count * window.stride[2] == begin &&
            columns(last) + window.stride[2] <= most_columns) {
          ++last.count;
          continue;
        }
      }
      groups.push_back({ox, 1, begin, end - begin});
    }
  }

  void row(const std::byte* in, std::int64_t n, std::int64_t oy, std::byte* out, std::byte* scratch) const {
    const std::int64_t c = window.channels;
    const auto [y_begin, y_end] = covered(1, oy);
    const std::int64_t height = y_end - y_begin;
    for (const Group& group : groups) {
      const std::int64_t first = ((n * window.in[1] + y_begin) * window.in[2] + group.column) * c;
      down({.in = in + first * size,
            .out = scratch,
            .pixels = 1,
            .pixel_step = 0,
            .count = columns(group) * c,
            .taps = height,
            .tap_step = window.in[2] * c,
            .start = -static_cast<std::int32_t>(height) * zero_point});
      std::byte* to = out + group.first * c * size;
      std::byte* sums = scratch + line_bytes;
      PoolCall call{.in = scratch,
                    .out = narrow ? sums : to,
                    .pixels = group.count,
                    .pixel_step = window.stride[2] * c,
                    .count = c,
                    .taps = group.width,
                    .tap_step = c,
                    .divisor = static_cast<float>(height * group.width)};
      if (window.stride[2] == 1) call.pixels = 1, call.count = group.count * c;
      across(call);
      if (narrow) narrow({group.count * c, 0, {sums}, to, &by_count.at(height * group.width)});
    }
  }
};

}  // namespace

bool take_pool(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const bool average = node.op == tosa::op::avg_pool2d;
  if (!average && node.op != tosa::op::max_pool2d) return false;
  const DType type = planning.type(node.inputs[0]).dtype;
  const bool integer = is_integer(type);
  if (type != DType::f32 && type != DType::i8 && type != DType::i16) return false;
  auto pool = std::make_shared<Pool>();
  pool->window = window_of(planning.graph, node);
  pool->input = node.inputs[0];
  pool->output = node.outputs[0];
  pool->size = static_cast<std::int64_t>(storage_size(type));
  pool->joined_size = average ? 4 : pool->size;
  const bool ignore_nan = node.attrs.get_or<std::string>("nan_mode", "propagate") == "ignore";
  const PoolJoin join = average ? PoolJoin::sum : ignore_nan ? PoolJoin::largest_number : PoolJoin::largest;
  pool->down = pool_kernel(join, type);
  if (average && integer) {
    if (!planning.constant(node.inputs[1]) || !planning.constant(node.inputs[2])) return false;
    pool->across = pool_kernel(join, DType::i32);
    pool->zero_point = only_scalar(planning.graph, node.inputs[1]);
    pool->narrow = block_kernel({.op = tosa::op::rescale, .in = DType::i32, .out = type});
  } else {
    pool->across = pool_kernel(average ? PoolJoin::mean : join, type);
  }
  pool->group_pixels();
  if (pool->narrow)
    for (std::int64_t oy = 0; oy < pool->window.out[1]; ++oy)
      for (const Group& group : pool->groups) {
        const auto [begin, end] = pool->covered(1, oy);
        BlockConstants& constants = pool->by_count[(end - begin) * group.width];
        set_reciprocal(constants, (end - begin) * group.width);
        constants.output_zp = only_scalar(planning.graph, node.inputs[2]);
        constants.lowest = range_of(type).lowest;
        constants.highest = range_of(type).highest;
      }
  const Window& w = pool->window;
  std::int64_t columns = 0, pixels = 0;
  for (const Group& group : pool->groups) {
    columns = std::max(columns, pool->columns(group));
    pixels = std::max(pixels, group.count);
  }
  pool->line_bytes = align_up(static_cast<std::size_t>(columns * w.channels * pool->joined_size));
  const std::int64_t rows = w.batch * w.out[1];
  const std::int64_t row_work = w.out[2] * (w.kernel[1] + w.kernel[2]) * w.channels;
  pool->rows_per_task = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, row_work));
  Step step{.kernel = "pool", .nodes = {n}, .reads = {pool->input}, .writes = {pool->output}};
  step.scratch_per_thread = pool->line_bytes;
  if (pool->narrow) step.scratch_per_thread += align_up(static_cast<std::size_t>(pixels * w.channels) * 4);
  step.run = [pool, rows, scratch = step.scratch_per_thread](const Frame& frame) -> Status {
    const Window& window = pool->window;
    const auto* in = static_cast<const std::byte*>(frame.read(pool->input));
    auto* out = static_cast<std::byte*>(frame.write(pool->output));
    frame.pool.run((rows + pool->rows_per_task - 1) / pool->rows_per_task, [&](std::int64_t task, int thread) {
      const std::int64_t last = std::min(rows, (task + 1) * pool->rows_per_task);
      for (std::int64_t row = task * pool->rows_per_task; row < last; ++row)
        pool->row(in, row / window.out[1], row % window.out[1],
                  out + row * window.out[2] * window.channels * pool->size,
                  frame.scratch + static_cast<std::size_t>(thread) * scratch);
    });
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
