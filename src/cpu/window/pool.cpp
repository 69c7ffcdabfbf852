// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "cpu/elementwise/block.h"
#include "cpu/elementwise/reduce.h"
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

struct Pool {
  Window window;
  ValueId input = no_value, output = no_value;
  bool average = false;
  std::int64_t size = 1;          // bytes of an element
  BlockKernel combine = nullptr;  // maximum, or add in the accumulator's type
  BlockKernel widen = nullptr;    // to the accumulator, averages of integers
  BlockKernel narrow = nullptr;   // from it
  std::map<std::int64_t, BlockConstants> by_count;
  BlockConstants none;
  std::int64_t rows_per_task = 1;
  std::size_t accumulator_bytes = 0;

  void pixel(const std::byte* in, std::int64_t n, std::int64_t oy, std::int64_t ox, std::byte* out,
             std::byte* scratch) const {
    const std::int64_t c = window.channels;
    const std::int64_t y0 = oy * window.stride[1] - window.before[1], x0 = ox * window.stride[2] - window.before[2];
    const std::int64_t y_begin = std::max<std::int64_t>(0, y0), y_end = std::min(window.in[1], y0 + window.kernel[1]);
    const std::int64_t x_begin = std::max<std::int64_t>(0, x0), x_end = std::min(window.in[2], x0 + window.kernel[2]);
    const std::int64_t count = (y_end - y_begin) * (x_end - x_begin);
    // Two accumulators take turns: kernels want an output that is none of their inputs. The last result of a
    // maximum goes straight to the output.
    std::byte* accumulator[2] = {scratch, scratch + accumulator_bytes};
    const void* sum = nullptr;
    std::int64_t done = 0;
    for (std::int64_t y = y_begin; y < y_end; ++y)
      for (std::int64_t x = x_begin; x < x_end; ++x) {
        const void* value = in + ((n * window.in[1] + y) * window.in[2] + x) * c * size;
        ++done;
        if (widen) {
          std::byte* wide = scratch + 2 * accumulator_bytes;
          if (done == 1) wide = accumulator[0];
          widen({c, 0, {value}, wide, &none});
          value = wide;
        }
        if (done == 1) {
          sum = value;
        } else {
          void* to = !average && done == count ? out : accumulator[done % 2 == 0 ? 1 : 0];
          combine({c, 0, {sum, value}, to, &none});
          sum = to;
        }
      }
    if (narrow) {
      narrow({c, 0, {sum}, out, &by_count.at(count)});
    } else if (average) {
      const auto* from = static_cast<const float*>(sum);
      auto* to = reinterpret_cast<float*>(out);
      for (std::int64_t i = 0; i < c; ++i) to[i] = from[i] / static_cast<float>(count);
    } else if (count == 1) {
      std::copy_n(static_cast<const std::byte*>(sum), c * size, out);
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
  pool->average = average;
  pool->size = static_cast<std::int64_t>(storage_size(type));
  if (!average) {
    const bool ignore = node.attrs.get_or<std::string>("nan_mode", "propagate") == "ignore";
    pool->combine = block_kernel({.op = tosa::op::maximum, .in = type, .out = type, .ignore_nan = ignore});
  } else if (integer) {
    if (!planning.constant(node.inputs[1]) || !planning.constant(node.inputs[2])) return false;
    pool->widen = block_kernel({.op = tosa::op::cast, .in = type, .out = DType::i32});
    pool->combine = block_kernel({.op = tosa::op::add, .in = DType::i32, .out = DType::i32});
    pool->narrow = block_kernel({.op = tosa::op::rescale, .in = DType::i32, .out = type});
    // One set of constants for every number of elements that a window can hold.
    for (std::int64_t y = 1; y <= pool->window.kernel[1]; ++y)
      for (std::int64_t x = 1; x <= pool->window.kernel[2]; ++x) {
        BlockConstants& constants = pool->by_count[y * x];
        set_reciprocal(constants, y * x);
        constants.input_zp = static_cast<std::int32_t>(y * x) * only_scalar(planning.graph, node.inputs[1]);
        constants.output_zp = only_scalar(planning.graph, node.inputs[2]);
        constants.lowest = range_of(type).lowest;
        constants.highest = range_of(type).highest;
      }
  } else {
    pool->combine = block_kernel({.op = tosa::op::add, .in = type, .out = type});
  }
  const Window& w = pool->window;
  pool->accumulator_bytes = align_up(static_cast<std::size_t>(w.channels) * 4);
  const std::int64_t rows = w.batch * w.out[1];
  const std::int64_t row_work = w.out[2] * w.taps() * w.channels;
  pool->rows_per_task = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, row_work));
  Step step{.kernel = "pool", .nodes = {n}, .reads = {pool->input}, .writes = {pool->output}};
  step.scratch_per_thread = 3 * pool->accumulator_bytes;
  step.run = [pool, rows, scratch = step.scratch_per_thread](const Frame& frame) -> Status {
    const Window& window = pool->window;
    const auto* in = static_cast<const std::byte*>(frame.read(pool->input));
    auto* out = static_cast<std::byte*>(frame.write(pool->output));
    frame.pool.run((rows + pool->rows_per_task - 1) / pool->rows_per_task, [&](std::int64_t task, int thread) {
      const std::int64_t last = std::min(rows, (task + 1) * pool->rows_per_task);
      for (std::int64_t row = task * pool->rows_per_task; row < last; ++row)
        for (std::int64_t ox = 0; ox < window.out[2]; ++ox)
          pool->pixel(in, row / window.out[1], row % window.out[1], ox,
                      out + (row * window.out[2] + ox) * window.channels * pool->size,
                      frame.scratch + static_cast<std::size_t>(thread) * scratch);
    });
    return {};
  };
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
