// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8 bits by tiles (AMX) without patches: a row of A is a pixel of the input between margins, and each
// step of a sum, 64 channels under one place of the window, begins as far from it as that place is. Pixels of a line
// and the next one's are rows alike, so that tiles need not end where lines do; what the sums over the margins come to
// is dropped.
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/window/conv.h"
#include "cpu/window/line_tasks.h"
#include "cpu/window/packed_conv_i8.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

constexpr std::int64_t line_of_cache = static_cast<std::int64_t>(line_bytes);

struct ConvLinesI8 {
  Window window;
  std::vector<PackedConvI8> groups;  // one
  Epilogue epilogue;
  LineTasks sharing;
  ValueId input = no_value;
  std::int32_t input_zp = 0;
  std::int64_t pitch = 0;           // bytes from pixel to pixel
  std::vector<std::int64_t> steps;  // where they begin
  std::size_t lines_memory = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  const PanelsI8& weight() const { return groups[0].weight; }
  // Pixels of a line with its margins, which windows reach.
  std::int64_t line_pixels() const { return window.out[2] + (window.kernel[2] - 1) * window.dilation[2]; }
  std::int64_t lines_for(std::int64_t output_lines) const {
    return output_lines + (window.kernel[1] - 1) * window.dilation[1];
  }
  std::int64_t rows_for(std::int64_t output_lines) const { return (output_lines - 1) * line_pixels() + window.out[2]; }

  void copy_lines(const std::int8_t* image, std::int64_t first, std::int64_t output_lines, std::byte* to) const {
    const std::int64_t all = line_pixels(), left = window.before[2], own = std::min(window.in[2], all - left);
    const auto margin = [&](std::int64_t pixels, std::byte* at) {
      std::memset(at, input_zp, static_cast<std::size_t>(pixels * pitch));
    };
    for (std::int64_t i = 0; i < lines_for(output_lines); ++i, to += all * pitch) {
      const std::int64_t line = first - window.before[1] + i;
      if (line < 0 || line >= window.in[1]) {
        margin(all, to);
        continue;
      }
      const std::int8_t* from = image + line * window.in[2] * window.channels;
      margin(left, to);
      for (std::int64_t x = 0; x < own; ++x)
        std::memcpy(to + (left + x) * pitch, from + x * window.channels, static_cast<std::size_t>(window.channels));
      margin(all - left - own, to + (left + own) * pitch);
    }
  }

  void run_task(const Frame& frame, std::int64_t t, std::byte* memory) const {
    const LineTasks::Task task = sharing.task(t);
    const std::int64_t n = weight().n, row = (task.image * sharing.lines + task.first_line) * window.out[2];
    const auto* in = static_cast<const std::int8_t*>(frame.read(input));
    copy_lines(in + task.image * window.in[1] * window.in[2] * window.channels, task.first_line, task.lines, memory);
    std::byte* tile = memory + lines_memory;
    const Sharing::Part part{0, rows_for(task.lines), task.first_of(weight().count(), sharing.parts),
                             task.end_of(weight().count(), sharing.parts)};
    multiply(*kernel, part, {memory, pitch, steps.data(), line_pixels(), window.out[2]}, nullptr, weight(),
             groups[0].rescale(epilogue), epilogue.sums(frame, row * n, tile), n);
    epilogue.finish(frame, row * n, (row + task.lines * window.out[2]) * n, tile, tile + tile_bytes);
  }
};

bool goes_by_lines(const Window& w) {
  constexpr std::array<std::int64_t, 3> ones{1, 1, 1};
  const std::int64_t margins = (w.kernel[2] - 1) * w.dilation[2];
  return w.kernel[0] == 1 && w.in[0] == 1 && w.out[0] == 1 && w.before[1] >= 0 && w.before[2] >= 0 &&
         w.stride == ones && w.spread == ones && w.taps() > 1 && w.groups() == 1 && w.channels % line_of_cache == 0 &&
         3 * margins <= w.out[2];
}

void share(ConvLinesI8& conv, int threads) {
  const Window& w = conv.window;
  const bool chain = conv.epilogue.chain != nullptr;
  const std::int64_t wanted = wanted_tasks(threads), lines = w.out[1],
                     bytes = conv.line_pixels() * conv.pitch + (chain ? w.out[2] * conv.weight().n : 0);
  LineTasks& sharing = conv.sharing = {.images = w.batch, .lines = lines, .lines_per_task = lines};
  constexpr std::int64_t fewest_rows = 128, a_block = 32;  // of fewer, columns are shared out; tiles want so many
  if (chain || w.batch * lines * w.out[2] >= fewest_rows) {
    const std::int64_t most = std::min(bytes_of_rows() / bytes, (w.batch * lines + wanted - 1) / wanted);
    const std::int64_t at_once = std::min(lines, std::max(most, (a_block + w.out[2] - 1) / w.out[2]));
    const std::int64_t blocks = (lines + at_once - 1) / at_once;
    sharing.lines_per_task = (lines + blocks - 1) / blocks;
  }
  if (!chain) sharing.parts = std::clamp<std::int64_t>(wanted / sharing.tasks(), 1, conv.weight().count());
}

}  // namespace

bool take_conv_lines_i8(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_convolution_of_i8(planning.graph, node) || only_scalar(planning.graph, node.inputs[4]) != 0) return false;
  const Window window = window_of(planning.graph, node);
  const GemmI8& kernel = gemm_i8(window.rows(), window.k());
  if (!kernel.loads_tiles || !goes_by_lines(window)) return false;
  auto conv = std::make_shared<ConvLinesI8>();
  conv->window = window;
  conv->kernel = &kernel;
  conv->input = node.inputs[0];
  conv->input_zp = only_scalar(planning.graph, node.inputs[3]);
  conv->groups = pack_conv_i8(planning, node, window, kernel);
  conv->epilogue = find_epilogue(planning, n, true);
  pack_scales(conv->epilogue, kernel, conv->groups);
  conv->pitch = (window.channels / line_of_cache | 1) * line_of_cache;  // see GemmI8::loads_tiles
  for (std::int64_t y = 0; y < window.kernel[1]; ++y)
    for (std::int64_t x = 0; x < window.kernel[2]; ++x)
      for (std::int64_t c = 0; c < window.channels; c += line_of_cache)
        conv->steps.push_back((y * window.dilation[1] * conv->line_pixels() + x * window.dilation[2]) * conv->pitch +
                              c);
  share(*conv, planning.threads);
  const std::int64_t lines = conv->sharing.lines_per_task,
                     pixels = conv->lines_for(lines) * conv->line_pixels() + kernel.least_rows;
  conv->lines_memory = align_up(static_cast<std::size_t>(pixels * conv->pitch));
  conv->tile_bytes = conv->epilogue.tile_bytes(lines * window.out[2] * conv->weight().n);
  conv->scratch = conv->lines_memory + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvLinesI8>(planning, "conv_lines_i8", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
