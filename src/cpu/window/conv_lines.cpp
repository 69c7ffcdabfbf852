// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/window/conv.h"
#include "cpu/window/input_lines.h"

namespace tosaic::cpu {
namespace {

struct ConvLines : InputLines {
  std::vector<PackedF32> groups;  // of channels: their weights
  Epilogue epilogue;
  LineTasks sharing;
  ValueId input = no_value;
  std::size_t line_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmF32* kernel = nullptr;

  std::int64_t columns() const { return std::ssize(groups) * groups[0].n; }

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
      std::min(bytes_of_lines / bytes, (window.batch * window.out[1] + wanted - 1) / wanted), 1, window.out[1]);
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
