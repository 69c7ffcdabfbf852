// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <optional>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/window/conv.h"
#include "cpu/window/line_patches.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvF32 {
  Window window;
  std::vector<PackedF32> groups;  // of channels: their weights
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::size_t patch_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmF32* kernel = nullptr;
  std::int64_t pitch = 0;            // of patches
  std::optional<LinePatches> lines;  // in place of patches

  std::int64_t columns() const { return std::ssize(groups) * groups[0].n; }
  bool copies() const { return lines || !window.is_matrix() || pitch != window.k(); }
  // Patches [first, first + rows) into `to`. Short runs are copied four floats at a time: what is written past
  // their end is overwritten by the next run, `to` has room for the last. `channel`: the group's first.
  RowsF32 gather(const float* from, std::int64_t channel, std::int64_t first, std::int64_t rows, float* to) const {
    const std::int64_t end = window.input_elements() - channel;
    from += channel;
    const auto copy = [&](std::int64_t at, std::int64_t where, std::int64_t count) {
      if (count > 64 || at + count + 4 > end) {
        std::memcpy(to + where, from + at, static_cast<std::size_t>(count) * sizeof(float));
      } else {
        for (std::int64_t i = 0; i < count; i += 4) std::memcpy(to + where + i, from + at + i, 4 * sizeof(float));
      }
    };
    const auto fill = [&](std::int64_t where, std::int64_t count) { std::fill_n(to + where, count, 0.0f); };
    if (lines) return {to + lines->gather(first, rows, copy, fill), pitch, lines->starts()};
    for_patches(window, first, rows, pitch, copy, fill);
    return {to, pitch};
  }

  void plan_patches(bool by_lines) {
    const std::int64_t block = sharing.rows_per_task;
    pitch = best_pitch(*kernel, by_lines ? window.kernel[2] * window.channels : window.k(), groups[0].n);
    if (by_lines) lines.emplace(window, pitch, block);
    const std::int64_t elements = lines ? lines->elements() : copies() ? block * pitch : 0;
    if (elements > 0) patch_bytes = align_up(static_cast<std::size_t>(elements + 16) * 4);
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = columns();
    const auto* in = static_cast<const float*>(frame.read(input));
    auto* patches = reinterpret_cast<float*>(memory);
    std::byte* tile = memory + patch_bytes;
    auto* c = reinterpret_cast<float*>(epilogue.sums(frame, part.first_row * n, tile));
    if (groups.size() == 1) multiply_group(0, part, in, patches, c);
    // Of several a part has some, as a whole.
    for (std::int64_t g = part.first_panel; groups.size() > 1 && g < part.last_panel; ++g)
      multiply_group(g, {part.first_row, part.rows, 0, groups[0].count()}, in, patches, c);
    epilogue.finish(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
  }
  void multiply_group(std::int64_t g, const Sharing::Part& part, const float* in, float* patches, float* c) const {
    const PackedF32& group = groups[static_cast<std::size_t>(g)];
    const std::int64_t channel = g * window.channels;
    const RowsF32 a = copies() ? gather(in, channel, part.first_row, part.rows, patches)
                               : RowsF32{in + part.first_row * window.pixel + channel, window.pixel};
    multiply(*kernel, sharing, part, a, group, epilogue.lowest, epilogue.highest, c + g * group.n, columns());
  }
};

}  // namespace

std::vector<PackedF32> pack_convolution(Planning& planning, const Node& node, const Window& window) {
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const Bytes weights = patch_weights(planning.graph, node);
  const std::int64_t k = window.k(), count = window.groups(), columns = weight.type.shape.size(0) / count;
  const bool lasts = count == 1 && lie_as_patches(node), one_bias = bias.type.shape.elements() == 1;
  std::vector<PackedF32> groups(static_cast<std::size_t>(count));
  for (std::int64_t g = 0; g < count; ++g)
    pack_rows(weights.as<float>().data() + g * columns * k, columns, k,
              bias.constant.as<float>().data() + (one_bias ? 0 : g * columns), one_bias ? 1 : columns,
              groups[static_cast<std::size_t>(g)], lasts ? &planning.packed_weights->floats : nullptr);
  return groups;
}

void give_back_joined(Planning& planning, const Node& node, const Window& window) {
  if (window.groups() > 1) planning.packed_operands.emplace_back(node.inputs[1], node.inputs[2]);
}

bool take_conv_f32(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_convolution_of_floats(planning.graph, node)) return false;
  auto conv = std::make_shared<ConvF32>();
  conv->kernel = &gemm_f32();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  const Value& weight = planning.graph[node.inputs[1]];
  conv->groups = pack_convolution(planning, node, conv->window);
  conv->epilogue = find_epilogue(
      planning, n, false,
      !shares_columns(planning, conv->window.rows(), conv->kernel->max_rows, weight.type.shape.elements()));
  const bool by_lines = LinePatches::fit(conv->window);
  const std::int64_t patch = by_lines ? LinePatches::elements_of_row(conv->window) : conv->window.k(),
                     row_bytes = (patch + (conv->epilogue.chain ? conv->columns() : 0)) * 4;
  const std::int64_t groups = conv->window.groups(), panels = groups > 1 ? groups : conv->groups[0].count();
  conv->sharing = Sharing::plan(conv->window.rows(), conv->kernel->max_rows, panels, row_bytes, planning.threads,
                                conv->epilogue.chain != nullptr);
  conv->plan_patches(by_lines);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->tile_bytes = conv->epilogue.tile_bytes(block * conv->columns());
  give_back_joined(planning, node, conv->window);
  conv->scratch = conv->patch_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvF32>(planning, "conv_f32", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
