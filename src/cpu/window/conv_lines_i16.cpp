// SPDX-License-Identifier: Apache-2.0
// Convolutions of i16 inputs and i8 weights, by lines, whose sums are RESCALEd in i32.
#include "cpu/window/conv.h"
#include "cpu/window/input_lines.h"
#include "cpu/window/weights_i16.h"

namespace tosaic::cpu {
namespace {

struct ConvLinesI16 : InputLines {
  WeightsI16 weights;
  Epilogue epilogue;
  LineTasks sharing;
  ValueId input = no_value;
  std::size_t line_bytes = 0, tile_bytes = 0, scratch = 0;

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const std::int64_t image = task / sharing.of_image(), first = task % sharing.of_image() * sharing.lines_per_task,
                       count = std::min(sharing.lines_per_task, sharing.lines - first);
    auto* lines = reinterpret_cast<std::int16_t*>(memory);
    copy_lines(static_cast<const std::int16_t*>(frame.read(input)) + image * window.in[1] * in_line(), first, count,
               lines);
    const std::int64_t row = (image * sharing.lines + first) * window.out[2], n = weights.panels.n;
    std::byte* tile = memory + line_bytes;
    auto* c = reinterpret_cast<std::int16_t*>(epilogue.sums(frame, row * n, tile));
    for (std::int64_t p = 0; p < weights.panels.count(); ++p) multiply_lines(p, lines, count, c);
    epilogue.finish(frame, row * n, (row + count * window.out[2]) * n, tile, tile + tile_bytes);
  }
  void multiply_lines(std::int64_t p, const std::int16_t* lines, std::int64_t count, std::int16_t* c) const {
    const std::int64_t pitch = padded_line(), across = window.out[2];
    GemmI8Call call = weights.rescaling_call(p, epilogue);
    call.segments = window.kernel[1];
    call.segment_stride = window.dilation[1] * pitch * 2;
    call.groups /= call.segments;
    call.a_stride = window.stride[2] * window.channels * 2;
    call.rows = across;
    for (std::int64_t line = 0; line < count; ++line) {
      call.a = lines + line * window.stride[1] * pitch;
      call.c_i16 = c + line * across * call.c_stride + p * weights.panels.panel_width();
      weights.kernel->panel(call);
    }
  }
};

}  // namespace

bool take_conv_lines_i16(Planning& planning, std::uint32_t n, const Window& window) {
  const Node& node = planning.node(n);
  if (!goes_by_lines(window, planning.type(node.inputs[1]).shape.size(0))) return false;
  const ShortSums sums = short_sums(planning, node, window.k());
  auto conv = std::make_shared<ConvLinesI16>();
  conv->epilogue = find_epilogue(planning, n, sums.fit_i32());
  if (!conv->epilogue.rescaled) return false;
  conv->window = window;
  conv->input = node.inputs[0];
  conv->weights = weights_i16(planning, node, window.k(), sums, window.kernel[1]);
  conv->weights.add_epilogue(conv->epilogue);
  const std::int64_t columns = conv->weights.panels.n;
  const std::int64_t all_lines = window.batch * window.out[1], wanted = wanted_tasks(planning.threads);
  const std::int64_t bytes = conv->padded_line() * window.stride[1] * 2 + window.out[2] * columns * 2;
  conv->sharing = {.images = window.batch, .lines = window.out[1]};
  conv->sharing.lines_per_task =
      std::clamp<std::int64_t>(std::min(bytes_of_lines / bytes, (all_lines + wanted - 1) / wanted), 1, window.out[1]);
  const std::int64_t lines = conv->sharing.lines_per_task;
  // A segment of an odd number of elements is read with one more.
  conv->line_bytes = align_up(static_cast<std::size_t>(conv->lines_for(lines) * conv->padded_line() + 1) * 2);
  conv->tile_bytes = conv->epilogue.tile_bytes(lines * window.out[2] * columns);
  conv->scratch = conv->line_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvLinesI16>(planning, "conv_i16", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
