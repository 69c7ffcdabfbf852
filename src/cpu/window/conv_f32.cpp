// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/window/conv.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvF32 {
  Window window;
  PackedF32 weight;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::size_t patch_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmF32* kernel = nullptr;
  std::int64_t pitch = 0;  // of patches

  bool copies() const { return !window.is_matrix() || pitch != window.k(); }
  // Patches [first, first + rows) into `to`. Short runs are copied four floats at a time: what is written past
  // their end is overwritten by the next run, `to` has room for the last.
  void gather(const float* from, std::int64_t first, std::int64_t rows, float* to) const {
    const std::int64_t end = window.input_elements();
    for_patches(
        window, first, rows, pitch,
        [&](std::int64_t at, std::int64_t where, std::int64_t count) {
          if (count > 64 || at + count + 4 > end) {
            std::memcpy(to + where, from + at, static_cast<std::size_t>(count) * sizeof(float));
          } else {
            for (std::int64_t i = 0; i < count; i += 4) std::memcpy(to + where + i, from + at + i, 4 * sizeof(float));
          }
        },
        [&](std::int64_t where, std::int64_t count) { std::fill_n(to + where, count, 0.0f); });
  }

  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t k = weight.k, n = weight.n;
    const auto* in = static_cast<const float*>(frame.read(input));
    const float* a = in + part.first_row * k;
    if (copies()) {
      auto* patches = reinterpret_cast<float*>(memory);
      gather(in, part.first_row, part.rows, patches);
      a = patches;
    }
    std::byte* tile = memory + patch_bytes;
    auto* c = reinterpret_cast<float*>(epilogue.sums(frame, part.first_row * n, tile));
    multiply(*kernel, sharing, part, a, pitch, weight, epilogue.lowest, epilogue.highest, c);
    epilogue.finish(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
  }
};

}  // namespace

void pack_convolution(const Planning& planning, const Node& node, std::int64_t k, PackedF32& packed) {
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const Bytes weights = patch_weights(planning.graph, node);
  pack_rows(reinterpret_cast<const float*>(weights.data()), weight.type.shape.size(0), k,
            reinterpret_cast<const float*>(bias.constant.data()), bias.type.shape.elements(), packed,
            lie_as_patches(node) ? &planning.packed_weights->floats : nullptr);
}

bool take_conv_f32(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_dense_convolution(node)) return false;
  if (planning.type(node.inputs[0]).dtype != DType::f32) return false;
  if (!planning.constant(node.inputs[1]) || !planning.constant(node.inputs[2])) return false;
  auto conv = std::make_shared<ConvF32>();
  conv->kernel = &gemm_f32();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  const Value& weight = planning.graph[node.inputs[1]];
  pack_convolution(planning, node, conv->window.k(), conv->weight);
  conv->epilogue = find_epilogue(
      planning, n, false,
      !shares_columns(planning, conv->window.rows(), conv->kernel->max_rows, weight.type.shape.elements()));
  const std::int64_t row_bytes = conv->window.k() * 4 + (conv->epilogue.chain ? conv->weight.n * 4 : 0);
  conv->sharing = Sharing::plan(conv->window.rows(), conv->kernel->max_rows, conv->weight.count(), row_bytes,
                                planning.threads, conv->epilogue.chain != nullptr);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->pitch = best_pitch(*conv->kernel, conv->window.k(), conv->weight.n);
  if (conv->copies()) conv->patch_bytes = align_up(static_cast<std::size_t>(block * conv->pitch + 16) * 4);
  conv->tile_bytes = conv->epilogue.tile_bytes(block * conv->weight.n);
  conv->scratch = conv->patch_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvF32>(planning, "conv_f32", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
