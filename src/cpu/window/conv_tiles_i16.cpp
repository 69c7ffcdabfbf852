// SPDX-License-Identifier: Apache-2.0
// Convolutions of i16 inputs and i8 weights by tiles (AMX), which multiply bytes: once with the inputs' upper bytes,
// and once with their lower ones.
#include <algorithm>
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/matrix/short_bytes.h"
#include "cpu/matrix/short_parts.h"
#include "cpu/matrix/short_sums.h"
#include "cpu/matrix/tiles.h"
#include "cpu/window/conv.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

// Sums of so many rows and a panel's columns stay in the nearest cache until they are joined. Of more, even groups have
// whole blocks of tiles: nothing past the last row is read.
constexpr std::int64_t rows_at_once = 64;
// Shorter ones take as long by pairs of i16; more do not fit i32 (2^7 * 2^7 each, and 128 times the weights' sum).
constexpr std::int64_t shortest_sum = 128, longest_sum = 1 << 16;
constexpr std::int64_t fewest_columns = 48;  // for fewer, patches of bytes are not worth their copies

struct ConvTilesI16 {
  Window window;
  PanelsI8 weight;
  std::shared_ptr<const PackedI8> packed;
  std::vector<std::int64_t> bias;
  Lines<std::int32_t> upper_terms, lower_terms;  // what the two sums begin with
  RescaleColumns scales;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int64_t row_bytes = 0;
  std::size_t patch_bytes = 0, sum_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  // The input's upper bytes, then its lower ones, each with what a copy of the last ones reads past them.
  std::int64_t plane_bytes() const { return static_cast<std::int64_t>(align_up(window.input_elements() + 64)); }
  void prepare(const Frame& frame) const {
    constexpr std::int64_t at_once = 1 << 15;
    const std::int64_t count = window.input_elements();
    const auto* in = static_cast<const std::int16_t*>(frame.read(input));
    auto* planes = reinterpret_cast<std::int8_t*>(frame.shared);
    frame.pool.run((count + at_once - 1) / at_once, [&](std::int64_t task, int) {
      const std::int64_t first = task * at_once;
      short_bytes().split(in + first, std::min(at_once, count - first), planes + first, planes + plane_bytes() + first);
    });
  }

  // Short runs are copied sixteen at a time, over what comes next. Outside x is 0.
  void gather(const std::int8_t* plane, std::int8_t outside, std::int64_t first, std::int64_t rows,
              std::int8_t* to) const {
    for_patches(
        window, first, rows, row_bytes,
        [=](std::int64_t at, std::int64_t where, std::int64_t count) {
          const std::int8_t* from = plane + at;
          std::int8_t* place = to + where;
          if (count > 256) {
            std::memcpy(place, from, static_cast<std::size_t>(count));
          } else {
            for (std::int64_t i = 0; i < count; i += 16) std::memcpy(place + i, from + i, 16);
          }
        },
        [=](std::int64_t where, std::int64_t count) { std::fill_n(to + where, count, outside); });
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const auto* planes = reinterpret_cast<const std::int8_t*>(frame.shared);
    std::byte* lower = memory + patch_bytes / 2;
    gather(planes, 0, part.first_row, part.rows, reinterpret_cast<std::int8_t*>(memory));
    gather(planes + plane_bytes(), -128, part.first_row, part.rows, reinterpret_cast<std::int8_t*>(lower));
    auto* sums = reinterpret_cast<std::int32_t*>(memory + patch_bytes);
    std::byte* tile = memory + patch_bytes + sum_bytes;
    std::byte* c = epilogue.sums(frame, part.first_row * weight.n, tile);
    for (std::int64_t p = part.first_panel; p < part.last_panel; ++p)
      for_even_groups(part.rows, rows_at_once, [&](std::int64_t r, std::int64_t rows) {
        join(p, multiplied(p, memory + r * row_bytes, lower + r * row_bytes, rows, sums),
             c + r * weight.n * epilogue.element);
      });
    epilogue.finish(frame, part.first_row * weight.n, (part.first_row + part.rows) * weight.n, tile, tile + tile_bytes);
  }
  ByteSums multiplied(std::int64_t p, const std::byte* upper, const std::byte* lower, std::int64_t rows,
                      std::int32_t* sums) const {
    const std::int64_t first = p * weight.panel_width(), width = weight.panel_width();
    GemmI8Call call{};
    call.a_stride = row_bytes;
    call.rows = rows;
    call.groups = weight.groups;
    call.b = weight.panel(p);
    call.units = weight.units(p);
    call.columns = static_cast<int>(std::min<std::int64_t>(call.units * weight.unit_columns, weight.n - first));
    call.c_stride = 2 * width;
    call.a = upper;
    call.column_term = upper_terms.data() + first;
    call.sums = sums;
    kernel->panel(call);
    call.a = lower;
    call.column_term = lower_terms.data() + first;
    call.sums = sums + width;
    kernel->panel(call);
    return {sums, rows, width, call.columns};
  }
  void join(std::int64_t p, const ByteSums& sums, std::byte* c) const {
    const std::int64_t first = p * weight.panel_width(), n = weight.n;
    if (epilogue.rescaled)
      return short_bytes().rescale(sums, scales, first, epilogue.lowest_quantised, epilogue.highest_quantised,
                                   reinterpret_cast<std::int16_t*>(c) + first, n);
    auto* to = reinterpret_cast<std::int64_t*>(c) + first;
    for (std::int64_t r = 0; r < sums.rows; ++r) std::copy_n(bias.data() + first, sums.columns, to + r * n);
    short_parts().join(sums.sums, sums.rows, sums.width, sums.columns, true, to, n);
  }
};

}  // namespace

bool take_conv_tiles_i16(Planning& planning, std::uint32_t n, const Window& window) {
  const Node& node = planning.node(n);
  const GemmI8* tiles = gemm_i8_tiles();
  const std::int64_t k = window.k(), columns = planning.type(node.inputs[1]).shape.size(0);
  if (!tiles || !worth_tiles(window.rows(), k) || k < shortest_sum || k > longest_sum || columns < fewest_columns ||
      only_scalar(planning.graph, node.inputs[4]) != 0)
    return false;
  auto conv = std::make_shared<ConvTilesI16>();
  conv->kernel = tiles;
  conv->input = node.inputs[0];
  conv->window = window;
  conv->weight = panels_i8(*tiles, columns, k);
  const Bytes weights = patch_weights(planning.graph, node);
  const auto* rows = reinterpret_cast<const std::int8_t*>(weights.data());
  conv->packed = pack_rows(conv->weight, rows, lie_as_patches(node) ? &planning.packed_weights->integers : nullptr);
  conv->weight.data = conv->packed->panels.get();
  const auto bias = planning.graph[node.inputs[2]].constant.as<std::int64_t>();
  conv->epilogue = find_epilogue(planning, n, ShortSums({rows, columns, k, k, 1, 0}, bias).fit_i32());
  const bool rescaled = conv->epilogue.rescaled;
  conv->upper_terms.assign(static_cast<std::size_t>(conv->weight.padded()), 0);
  conv->lower_terms = conv->upper_terms;
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto at = static_cast<std::size_t>(j);
    conv->bias.push_back(bias[bias.size() == 1 ? 0 : at]);
    // May wrap: the whole sum fits.
    conv->lower_terms[at] = static_cast<std::int32_t>(
        static_cast<std::uint32_t>(std::int64_t{128} * conv->packed->sums[at] + (rescaled ? conv->bias[at] : 0)));
  }
  if (rescaled) conv->scales = rescale_columns(conv->epilogue.multiplier, conv->epilogue.shift, columns, tiles->lanes);
  conv->row_bytes = conv->weight.row_bytes(*tiles);
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing =
      Sharing::plan(window.rows(), tiles->max_rows, conv->weight.count(),
                    2 * conv->row_bytes + (chain ? columns * conv->epilogue.element : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->patch_bytes = 2 * align_up(rows_i8_bytes(*tiles, conv->weight, block));
  conv->sum_bytes = static_cast<std::size_t>(rows_at_once * 2 * conv->weight.panel_width()) * 4;
  conv->tile_bytes = conv->epilogue.tile_bytes(block * columns);
  conv->scratch = conv->patch_bytes + conv->sum_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  Step step{.kernel = "conv_i16", .nodes = {n}, .reads = {conv->input}};
  step.shared_scratch = 2 * static_cast<std::size_t>(conv->plane_bytes());
  add_shared_step<ConvTilesI16>(planning, std::move(step), std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
