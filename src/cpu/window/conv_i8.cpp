// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/window/conv.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvI8 {
  Window window;
  PanelsI8 weight;
  std::shared_ptr<const PackedI8> packed;
  Lines<std::int32_t> column_terms;
  RescaleColumns scales;
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int32_t input_zp = 0, weight_zp = 0;
  std::int64_t row_bytes = 0;  // of a row of patches in the kernel's form
  std::size_t patch_bytes = 0, term_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  // Sixteen elements in the kernel's form: u8 with the sign bit turned, or i16.
  template <bool wide>
  static void convert16(const std::int8_t* from, std::byte* to) {
    if constexpr (wide) {
      std::int16_t x[16];
      for (int i = 0; i < 16; ++i) x[i] = from[i];
      std::memcpy(to, x, 32);
    } else {
      std::uint64_t x[2];
      std::memcpy(x, from, 16);
      x[0] ^= 0x8080808080808080u;
      x[1] ^= 0x8080808080808080u;
      std::memcpy(to, x, 16);
    }
  }

  // Patches [first, first + rows). Short runs are written sixteen elements at a time, over what comes next.
  template <bool wide>
  void gather(const std::int8_t* from, std::int64_t first, std::int64_t rows, std::byte* to) const {
    constexpr std::int64_t size = wide ? 2 : 1;
    const std::int64_t end = window.input_elements();
    for_patches(
        window, first, rows, row_bytes / size,
        [&](std::int64_t at, std::int64_t where, std::int64_t count) {
          if (count > 128 || at + count + 16 > end) {
            kernel->convert(from + at, count, to + where * size);
          } else {
            for (std::int64_t i = 0; i < count; i += 16) convert16<wide>(from + at + i, to + (where + i) * size);
          }
        },
        [&](std::int64_t where, std::int64_t count) {
          if constexpr (wide)
            std::fill_n(reinterpret_cast<std::int16_t*>(to) + where, count, static_cast<std::int16_t>(input_zp));
          else
            std::memset(to + where, input_zp + 128, static_cast<std::size_t>(count));
        });
  }
  void patches(const std::int8_t* in, std::int64_t first, std::int64_t rows, std::byte* to) const {
    const std::int64_t k = weight.k;
    if (window.is_matrix() && row_bytes == k * kernel->a_bytes) return kernel->convert(in + first * k, rows * k, to);
    kernel->a_bytes == 2 ? gather<true>(in, first, rows, to) : gather<false>(in, first, rows, to);
  }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = weight.n;
    std::byte* a = memory;
    patches(static_cast<const std::int8_t*>(frame.read(input)), part.first_row, part.rows, a);
    auto* terms = reinterpret_cast<std::int32_t*>(memory + patch_bytes);
    if (weight_zp != 0) row_terms(*kernel, a, row_bytes, part.rows, weight.k, weight_zp, terms);
    std::byte* tile = memory + patch_bytes + term_bytes;
    const std::int64_t element = epilogue.rescaled ? 1 : 4;
    std::byte* c =
        epilogue.chain ? tile : static_cast<std::byte*>(frame.write(epilogue.output)) + part.first_row * n * element;
    multiply(*kernel, sharing, part, a, row_bytes, weight_zp != 0 ? terms : nullptr, weight,
             {epilogue.rescaled, &scales, epilogue.output_zp, epilogue.lowest_quantised, epilogue.highest_quantised},
             c);
    if (epilogue.chain)
      epilogue.chain->run(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
  }
};

}  // namespace

bool take_conv_i8(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_dense_convolution(node)) return false;
  const DType weight_type = planning.type(node.inputs[1]).dtype;
  if (planning.type(node.inputs[0]).dtype != DType::i8 || (weight_type != DType::i8 && weight_type != DType::i4))
    return false;
  if (!planning.only_first_computed(node)) return false;
  auto conv = std::make_shared<ConvI8>();
  conv->kernel = &gemm_i8();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  conv->input_zp = only_scalar(planning.graph, node.inputs[3]);
  conv->weight_zp = only_scalar(planning.graph, node.inputs[4]);
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const std::int64_t k = conv->window.k();
  conv->weight = panels_i8(*conv->kernel, weight.type.shape.size(0), k);
  const Bytes weights = patch_weights(planning.graph, node);
  conv->packed = pack_rows(conv->weight, reinterpret_cast<const std::int8_t*>(weights.data()),
                           weights.data() == weight.constant.data() ? &planning.packed_weights->integers : nullptr);
  conv->column_terms.resize(static_cast<std::size_t>(conv->weight.padded()));
  column_terms(conv->weight, conv->packed->sums, reinterpret_cast<const std::int32_t*>(bias.constant.data()),
               bias.type.shape.elements(), conv->input_zp, conv->weight_zp, conv->column_terms.data());
  conv->weight.data = conv->packed->panels.get();
  conv->weight.column_term = conv->column_terms.data();
  conv->epilogue = find_epilogue(planning, n, true);
  if (conv->epilogue.rescaled)
    conv->scales =
        rescale_columns(conv->epilogue.multiplier, conv->epilogue.shift, conv->weight.n, conv->kernel->lanes);
  conv->row_bytes = conv->weight.groups() * 4;
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing = Sharing::plan(conv->window.rows(), conv->kernel->max_rows, conv->weight.count(),
                                conv->row_bytes + (chain ? conv->weight.n * 4 : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->patch_bytes = align_up(static_cast<std::size_t>(block * conv->row_bytes) + 64);
  conv->term_bytes = conv->weight_zp != 0 ? align_up(static_cast<std::size_t>(block) * 4) : 0;
  conv->tile_bytes = conv->epilogue.tile_bytes(planning, block * conv->weight.n);
  conv->scratch = conv->patch_bytes + conv->term_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI8>(planning, "conv_i8", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
