// SPDX-License-Identifier: Apache-2.0
// Convolutions of i16 inputs and i8 weights with i48 sums (EXT-INT16, "16x8"). Sums that fit i32 with any input, as
// their weights show, are RESCALEd where they are; others are summed in i32 over stretches of K too short to overflow,
// and the stretches in i64.
#include <cstring>

#include "cpu/window/conv.h"
#include "cpu/window/weights_i16.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvI16 {
  Window window;
  WeightsI16 weights;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int64_t row_bytes = 0;
  std::size_t patch_bytes = 0, tile_bytes = 0, scratch = 0;

  const PanelsI8& panels() const { return weights.panels; }
  // The input's rows are read where they lie.
  bool reads_input() const { return window.is_matrix() && panels().k == panels().groups * panels().group; }

  // Short runs are copied sixteen elements at a time, over what comes next: a call for each would take longer.
  void gather(const std::int16_t* from, std::int64_t first, std::int64_t rows, std::int16_t* to) const {
    const std::int64_t end = window.input_elements();
    for_patches(
        window, first, rows, row_bytes / 2,
        [=](std::int64_t at, std::int64_t where, std::int64_t count) {
          const std::int16_t* source = from + at;  // copies' own, which the stores cannot change
          std::int16_t* place = to + where;
          if (count > 256 || at + count + 16 > end) {
            std::memcpy(place, source, static_cast<std::size_t>(count) * 2);
          } else {
            for (std::int64_t i = 0; i < count; i += 16) std::memcpy(place + i, source + i, 32);
          }
        },
        [=](std::int64_t where, std::int64_t count) { std::fill_n(to + where, count, std::int16_t{0}); });
  }

  void rescaled(std::int64_t p, const std::byte* a, std::int64_t rows, std::int16_t* c) const {
    GemmI8Call call = weights.rescaling_call(p, epilogue);
    call.a = a;
    call.a_stride = row_bytes;
    call.rows = rows;
    call.c_i16 = c + p * panels().panel_width();
    weights.kernel->panel(call);
  }

  void in_stretches(std::int64_t p, const std::byte* a, std::int64_t rows, std::int64_t* c) const {
    const std::int64_t n = panels().n, first_column = p * panels().panel_width(),
                       width = panels().units(p) * panels().unit_columns, columns = std::min(width, n - first_column);
    alignas(64) std::int32_t part[16 * 64];
    sharing.for_groups(rows, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(weights.bias.data() + first_column, columns, c + (first + r) * n + first_column);
      GemmI8Call call = weights.call(p);
      call.a = a + first * row_bytes;
      call.a_stride = row_bytes;
      call.rows = count;
      call.columns = static_cast<int>(width);
      call.c_stride = width;
      call.sums = part;
      for (std::int64_t g = 0; g < panels().groups; g += weights.stretch_groups) {
        call.groups = std::min(weights.stretch_groups, panels().groups - g);
        weights.kernel->panel(call);
        call.a = static_cast<const std::byte*>(call.a) + weights.stretch_groups * 4;
        call.b = static_cast<const std::byte*>(call.b) + weights.stretch_groups * width * 4;
        for (std::int64_t r = 0; r < count; ++r) {
          std::int64_t* to = c + (first + r) * n + first_column;
          for (std::int64_t j = 0; j < columns; ++j) to[j] += part[r * width + j];
        }
      }
    });
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = panels().n;
    const auto* in = static_cast<const std::int16_t*>(frame.read(input));
    const std::byte* a = memory;
    if (reads_input())
      a = reinterpret_cast<const std::byte*>(in + part.first_row * panels().k);
    else
      gather(in, part.first_row, part.rows, reinterpret_cast<std::int16_t*>(memory));
    std::byte* tile = memory + patch_bytes;
    std::byte* c = epilogue.sums(frame, part.first_row * n, tile);
    for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) {
      if (epilogue.rescaled)
        rescaled(p, a, part.rows, reinterpret_cast<std::int16_t*>(c));
      else
        in_stretches(p, a, part.rows, reinterpret_cast<std::int64_t*>(c));
    }
    epilogue.finish(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
  }
};

}  // namespace

bool take_conv_i16(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_dense_convolution(node)) return false;
  if (planning.type(node.inputs[0]).dtype != DType::i16 || planning.type(node.inputs[1]).dtype != DType::i8)
    return false;
  if (!planning.only_first_computed(node)) return false;
  const Window window = window_of(planning.graph, node);
  if (take_conv_tiles_i16(planning, n, window) || take_conv_lines_i16(planning, n, window)) return true;
  auto conv = std::make_shared<ConvI16>();
  conv->input = node.inputs[0];
  conv->window = window;
  const ShortSums sums = short_sums(planning, node, conv->window.k());
  conv->weights = weights_i16(planning, node, conv->window.k(), sums);
  conv->epilogue = find_epilogue(planning, n, sums.fit_i32());
  conv->weights.add_epilogue(conv->epilogue);
  const GemmI8& kernel = *conv->weights.kernel;
  const std::int64_t columns = conv->panels().n;
  conv->row_bytes = conv->panels().row_bytes(kernel);
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing =
      Sharing::plan(conv->window.rows(), kernel.max_rows, conv->panels().count(),
                    conv->row_bytes + (chain ? columns * conv->epilogue.element : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  if (!conv->reads_input()) conv->patch_bytes = align_up(static_cast<std::size_t>(block * conv->row_bytes) + 64);
  conv->tile_bytes = conv->epilogue.tile_bytes(block * columns);
  conv->scratch = conv->patch_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI16>(planning, "conv_i16", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
