// SPDX-License-Identifier: Apache-2.0
// Convolutions of i16 inputs and i8 weights with i48 sums (EXT-INT16, "16x8"). Products are summed in i32 over
// stretches of K too short to overflow, and the stretches in i64.
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/window/conv.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

// |x| <= 2^15 and |w - zero point| <= 2^8: 64 pairs of products stay below 2^30.
constexpr std::int64_t stretch_groups = 64;

struct ConvI16 {
  Window window;
  PanelsI8 weight;
  std::shared_ptr<const PackedI8> packed;
  std::vector<std::int64_t> bias;
  std::vector<std::int32_t> zeros;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int64_t row_bytes = 0;
  std::size_t patch_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  void gather(const std::int16_t* from, std::int64_t first, std::int64_t rows, std::int16_t* to) const {
    for_patches(
        window, first, rows, row_bytes / 2,
        [&](std::int64_t at, std::int64_t where, std::int64_t count) {
          std::memcpy(to + where, from + at, static_cast<std::size_t>(count) * 2);
        },
        [&](std::int64_t where, std::int64_t count) { std::fill_n(to + where, count, std::int16_t{0}); });
  }

  void panel(std::int64_t p, const std::byte* a, std::int64_t rows, std::int64_t* c) const {
    const std::int64_t first_column = p * weight.panel_width(), width = weight.units(p) * weight.unit_columns;
    const std::int64_t columns = std::min(width, weight.n - first_column);
    alignas(64) std::int32_t part[16 * 64];
    sharing.for_groups(rows, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(bias.data() + first_column, columns, c + (first + r) * weight.n + first_column);
      for (std::int64_t g = 0; g < weight.groups; g += stretch_groups) {
        GemmI8Call call{};
        call.a = a + first * row_bytes + g * 4;
        call.a_stride = row_bytes;
        call.rows = count;
        call.groups = std::min(stretch_groups, weight.groups - g);
        call.b = weight.panel(p) + g * width * 4;
        call.units = weight.units(p);
        call.column_term = zeros.data();
        call.columns = static_cast<int>(width);
        call.c_stride = width;
        call.sums = part;
        kernel->panel(call);
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
    gather(static_cast<const std::int16_t*>(frame.read(input)), part.first_row, part.rows,
           reinterpret_cast<std::int16_t*>(memory));
    std::byte* tile = memory + patch_bytes;
    auto* c = reinterpret_cast<std::int64_t*>(epilogue.sums(frame, part.first_row * n, tile));
    for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) panel(p, memory, part.rows, c);
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
  auto conv = std::make_shared<ConvI16>();
  conv->kernel = &gemm_i16();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const Value& zero_point = planning.graph[node.inputs[4]];
  const std::int64_t k = conv->window.k(), columns = weight.type.shape.size(0);
  const auto weight_zp = static_cast<std::int16_t>(element_as_integer(DType::i8, zero_point.constant.data(), 0));
  conv->weight = panels_i8(*conv->kernel, columns, k);
  const Bytes weights = patch_weights(planning.graph, node);
  const auto* rows = reinterpret_cast<const std::int8_t*>(weights.data());
  conv->packed = pack_rows(conv->weight, rows,
                           weight_zp == 0 && lie_as_patches(node) ? &planning.packed_weights->integers : nullptr);
  // Padding columns and products meet no input that matters: A's padding is not zeroed, B's must stay zero.
  if (weight_zp != 0) {
    const std::vector<std::int8_t> ones(static_cast<std::size_t>(columns * k), 1);
    const auto used = pack_rows(conv->weight, ones.data(), nullptr);
    auto* packed = reinterpret_cast<std::int16_t*>(conv->packed->panels.get());
    const auto* where = reinterpret_cast<const std::int16_t*>(used->panels.get());
    for (std::size_t i = 0; i < conv->weight.packed_bytes() / 2; ++i)
      packed[i] = static_cast<std::int16_t>(packed[i] - weight_zp * where[i]);
  }
  conv->weight.data = conv->packed->panels.get();
  conv->zeros.assign(static_cast<std::size_t>(conv->weight.panel_width()), 0);
  conv->bias.assign(static_cast<std::size_t>(conv->weight.padded()), 0);
  const auto values = bias.constant.as<std::int64_t>();
  for (std::size_t j = 0; j < static_cast<std::size_t>(columns); ++j)
    conv->bias[j] = values[values.size() == 1 ? 0 : j];
  conv->epilogue = find_epilogue(planning, n, false);
  conv->row_bytes = conv->weight.row_bytes(*conv->kernel);
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing = Sharing::plan(conv->window.rows(), conv->kernel->max_rows, conv->weight.count(),
                                conv->row_bytes + columns * 8, planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->patch_bytes = align_up(static_cast<std::size_t>(block * conv->row_bytes) + 64);
  conv->tile_bytes = conv->epilogue.tile_bytes(block * columns);
  conv->scratch = conv->patch_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI16>(planning, "conv_i16", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
