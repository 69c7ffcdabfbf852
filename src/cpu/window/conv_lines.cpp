// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/window/conv.h"
#include "cpu/window/line_tasks.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

// Where a patch is copied for few columns, or in runs as short as this, copying takes as long as products.
constexpr std::int64_t few_columns = 64, short_run = 64, fewest_rows = 4;
constexpr std::int64_t bytes_of_lines = 128 << 10;  // for one task: they stay in the second-level cache

struct ConvLines {
  Window window;
  std::vector<PackedF32> groups;  // of channels: their weights
  Epilogue epilogue;
  LineTasks sharing;
  ValueId input = no_value;
  std::size_t line_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmF32* kernel = nullptr;

  std::int64_t columns() const { return std::ssize(groups) * groups[0].n; }
  std::int64_t in_line() const { return window.in[2] * window.pixel; }
  // Elements of a group's input line and the padding at both of its ends that windows reach.
  std::int64_t padded_line() const {
    const std::int64_t reached = (window.out[2] - 1) * window.stride[2] + window.kernel[2];
    return std::max(reached, window.before[2] + window.in[2]) * window.channels;
  }
  std::int64_t lines_for(std::int64_t output_lines) const {
    return (output_lines - 1) * window.stride[1] + (window.kernel[1] - 1) * window.dilation[1] + 1;
  }

  // Input lines that output lines from `first` on read: of `image`, zeros beyond it.
  void copy_lines(const float* image, std::int64_t first, std::int64_t output_lines, float* to) const {
    const std::int64_t pitch = padded_line(), left = window.before[2] * window.channels,
                       own = window.in[2] * window.channels;
    for (std::int64_t i = 0; i < lines_for(output_lines); ++i, to += pitch) {
      const std::int64_t line = first * window.stride[1] - window.before[1] + i;
      if (line < 0 || line >= window.in[1]) {
        std::fill_n(to, pitch, 0.0f);
        continue;
      }
      std::fill_n(to, left, 0.0f);
      if (window.groups() == 1)
        std::copy_n(image + line * in_line(), own, to + left);
      else
        join_runs(image + line * in_line(), window.pixel, window.channels, window.in[2], to + left);
      std::fill(to + left + own, to + pitch, 0.0f);
    }
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto [image, first, count, part] = sharing.task(task);
    const float* in = static_cast<const float*>(frame.read(input)) + image * window.in[1] * in_line();
    auto* lines = reinterpret_cast<float*>(memory);
    const std::int64_t row = (image * sharing.lines + first) * window.out[2], n = columns();
    std::byte* tile = memory + line_bytes;
    auto* c = reinterpret_cast<float*>(epilogue.sums(frame, row * n, tile));
    const std::int64_t all = std::ssize(groups);
    for (std::int64_t g = all * part / sharing.parts; g < all * (part + 1) / sharing.parts; ++g) {
      const PackedF32& group = groups[static_cast<std::size_t>(g)];
      copy_lines(in + g * window.channels, first, count, lines);
      for (std::int64_t p = 0; p < group.count(); ++p) multiply_lines(group, p, lines, count, c + g * group.n);
    }
    epilogue.finish(frame, row * n, (row + count * window.out[2]) * n, tile, tile + tile_bytes);
  }
  void multiply_lines(const PackedF32& weight, std::int64_t p, const float* lines, std::int64_t count, float* c) const {
    const std::int64_t pitch = padded_line(), column = p * weight.panel_width(), across = window.out[2];
    GemmF32Call call{};
    call.segments = window.kernel[1];
    call.segment_stride = window.dilation[1] * pitch;
    call.k = window.kernel[2] * window.channels;
    call.a_stride = window.stride[2] * window.channels;
    call.b = weight.panel(p);
    call.b_stride = call.width = weight.width(p);
    call.bias = weight.bias + column;
    call.lowest = epilogue.lowest;
    call.highest = epilogue.highest;
    call.c_stride = columns();
    call.columns = static_cast<int>(std::min<std::int64_t>(call.width, weight.n - column));
    for (std::int64_t line = 0; line < count; ++line)
      for_even_groups(across, kernel->max_rows, [&](std::int64_t first, std::int64_t rows) {
        call.a = lines + line * window.stride[1] * pitch + first * call.a_stride;
        call.rows = static_cast<int>(rows);
        call.c = c + (line * across + first) * call.c_stride + column;
        kernel->panel(call);
      });
  }
};

bool goes_by_lines(const Window& w, std::int64_t columns) {
  constexpr std::array<std::int64_t, 3> dense{1, 1, 1};
  return w.kernel[0] == 1 && w.before[2] >= 0 && w.in[0] == 1 && w.out[0] == 1 && w.spread == dense &&
         w.dilation[2] == 1 && w.taps() > 1 && w.out[2] >= fewest_rows &&
         (columns <= few_columns || w.kernel[2] * w.channels < short_run);
}

}  // namespace

bool take_conv_lines(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_convolution_of_floats(planning.graph, node)) return false;
  const Value& weight = planning.graph[node.inputs[1]];
  const Window window = window_of(planning.graph, node);
  if (!goes_by_lines(window, weight.type.shape.size(0) / window.groups())) return false;
  auto conv = std::make_shared<ConvLines>();
  conv->window = window;
  conv->kernel = &gemm_f32();
  conv->input = node.inputs[0];
  conv->groups = pack_convolution(planning, node, window);
  give_back_joined(planning, node, window);
  conv->epilogue = find_epilogue(planning, n, false);
  const std::int64_t bytes = conv->padded_line() * window.stride[1] * 4 + window.out[2] * conv->columns() * 4,
                     wanted = wanted_tasks(planning.threads);
  conv->sharing = {.images = window.batch, .lines = window.out[1]};
  conv->sharing.lines_per_task = std::clamp<std::int64_t>(
      std::min(bytes_of_lines / bytes, window.batch * window.out[1] / wanted), 1, window.out[1]);
  // What follows wants all channels of a pixel.
  if (!conv->epilogue.chain)
    conv->sharing.parts = std::clamp<std::int64_t>(wanted / conv->sharing.tasks(), 1, window.groups());
  const std::int64_t lines = conv->sharing.lines_per_task;
  conv->line_bytes = align_up(static_cast<std::size_t>(conv->lines_for(lines) * conv->padded_line()) * 4);
  conv->tile_bytes = conv->epilogue.tile_bytes(lines * window.out[2] * conv->columns());
  conv->scratch = conv->line_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvLines>(planning, "conv_lines", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
