// SPDX-License-Identifier: Apache-2.0
// Convolutions of i16 inputs and i8 weights with i48 sums (EXT-INT16, "16x8"). Sums that fit i32 with any input, as
// their weights show, are RESCALEd where they are; others are summed in i32 over stretches of K too short to overflow,
// and the stretches in i64.
#include <algorithm>
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/short_sums.h"
#include "cpu/window/conv.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvI16 {
  Window window;
  PanelsI8 weight;
  std::shared_ptr<const PackedI8> packed;
  Lines<std::int32_t> terms;  // what sums in i32 begin with: the bias where the results are RESCALEd
  RescaleColumns scales;
  std::vector<std::int64_t> bias;
  std::int64_t stretch_groups = 0;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int64_t row_bytes = 0;
  std::size_t patch_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  // The input's rows are read where they lie.
  bool reads_input() const { return window.is_matrix() && weight.k == weight.groups * weight.group; }

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

  // What all calls for a panel have in common.
  GemmI8Call call_of(std::int64_t p, const std::byte* a, std::int64_t rows) const {
    GemmI8Call call{};
    call.a = a;
    call.a_stride = row_bytes;
    call.rows = rows;
    call.groups = weight.groups;
    call.b = weight.panel(p);
    call.units = weight.units(p);
    call.column_term = terms.data() + p * weight.panel_width();
    return call;
  }

  void rescaled(std::int64_t p, const std::byte* a, std::int64_t rows, std::int16_t* c) const {
    const std::int64_t first = p * weight.panel_width();
    GemmI8Call call = call_of(p, a, rows);
    call.columns = static_cast<int>(std::min<std::int64_t>(call.units * weight.unit_columns, weight.n - first));
    call.c_stride = weight.n;
    call.c_i16 = c + first;
    call.multiplier = scales.multiplier.data() + first;
    call.shift = scales.shift.data() + first;
    call.round = scales.round.data() + first;
    call.lowest = epilogue.lowest_quantised;
    call.highest = epilogue.highest_quantised;
    kernel->panel(call);
  }

  void in_stretches(std::int64_t p, const std::byte* a, std::int64_t rows, std::int64_t* c) const {
    const std::int64_t first_column = p * weight.panel_width(), width = weight.units(p) * weight.unit_columns;
    const std::int64_t columns = std::min(width, weight.n - first_column);
    alignas(64) std::int32_t part[16 * 64];
    sharing.for_groups(rows, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(bias.data() + first_column, columns, c + (first + r) * weight.n + first_column);
      GemmI8Call call = call_of(p, a + first * row_bytes, count);
      call.columns = static_cast<int>(width);
      call.c_stride = width;
      call.sums = part;
      for (std::int64_t g = 0; g < weight.groups; g += stretch_groups) {
        call.groups = std::min(stretch_groups, weight.groups - g);
        kernel->panel(call);
        call.a = static_cast<const std::byte*>(call.a) + stretch_groups * 4;
        call.b = static_cast<const std::byte*>(call.b) + stretch_groups * width * 4;
        for (std::int64_t r = 0; r < count; ++r) {
          std::int64_t* to = c + (first + r) * weight.n + first_column;
          for (std::int64_t j = 0; j < columns; ++j) to[j] += part[r * width + j];
        }
      }
    });
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = weight.n;
    const auto* in = static_cast<const std::int16_t*>(frame.read(input));
    const std::byte* a = memory;
    if (reads_input())
      a = reinterpret_cast<const std::byte*>(in + part.first_row * weight.k);
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

// Packs weights less their zero point.
void pack(Planning& planning, const Node& node, const std::int8_t* rows, std::int32_t weight_zp, ConvI16& conv) {
  const std::int64_t columns = conv.weight.n, k = conv.weight.k;
  conv.packed = pack_rows(conv.weight, rows,
                          weight_zp == 0 && lie_as_patches(node) ? &planning.packed_weights->integers : nullptr);
  // Padding columns and products meet no input that matters: A's padding is not zeroed, B's must stay zero.
  if (weight_zp != 0) {
    const std::vector<std::int8_t> ones(static_cast<std::size_t>(columns * k), 1);
    const auto used = pack_rows(conv.weight, ones.data(), nullptr);
    auto* packed = reinterpret_cast<std::int16_t*>(conv.packed->panels.get());
    const auto* where = reinterpret_cast<const std::int16_t*>(used->panels.get());
    for (std::size_t i = 0; i < conv.weight.packed_bytes() / 2; ++i)
      packed[i] = static_cast<std::int16_t>(packed[i] - weight_zp * where[i]);
  }
  conv.weight.data = conv.packed->panels.get();
}

}  // namespace

bool take_conv_i16(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_dense_convolution(node)) return false;
  if (planning.type(node.inputs[0]).dtype != DType::i16 || planning.type(node.inputs[1]).dtype != DType::i8)
    return false;
  if (!planning.only_first_computed(node)) return false;
  auto conv = std::make_shared<ConvI16>();
  conv->kernel = &gemm_i16();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  const std::int64_t k = conv->window.k(), columns = planning.type(node.inputs[1]).shape.size(0);
  const std::int32_t weight_zp = only_scalar(planning.graph, node.inputs[4]);
  conv->weight = panels_i8(*conv->kernel, columns, k);
  const Bytes weights = patch_weights(planning.graph, node);
  const auto* rows = reinterpret_cast<const std::int8_t*>(weights.data());
  pack(planning, node, rows, weight_zp, *conv);
  const auto bias = planning.graph[node.inputs[2]].constant.as<std::int64_t>();
  for (std::int64_t j = 0; j < columns; ++j)
    conv->bias.push_back(bias[bias.size() == 1 ? 0 : static_cast<std::size_t>(j)]);
  const ShortSums bounds({rows, columns, k, k, 1, weight_zp}, bias);
  conv->stretch_groups = bounds.stretch() / conv->kernel->group;
  conv->epilogue = find_epilogue(planning, n, bounds.fit_i32());
  conv->terms.assign(static_cast<std::size_t>(conv->weight.padded()), 0);
  const bool rescaled = conv->epilogue.rescaled;
  if (rescaled) {
    std::ranges::transform(conv->bias, conv->terms.begin(),
                           [](std::int64_t b) { return static_cast<std::int32_t>(b); });
    conv->scales = rescale_columns(conv->epilogue.multiplier, conv->epilogue.shift, columns, conv->kernel->lanes);
  }
  conv->row_bytes = conv->weight.row_bytes(*conv->kernel);
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing =
      Sharing::plan(conv->window.rows(), conv->kernel->max_rows, conv->weight.count(),
                    conv->row_bytes + (chain ? columns * conv->epilogue.element : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  if (!conv->reads_input()) conv->patch_bytes = align_up(static_cast<std::size_t>(block * conv->row_bytes) + 64);
  conv->tile_bytes = conv->epilogue.tile_bytes(block * columns);
  conv->scratch = conv->patch_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI16>(planning, "conv_i16", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
