// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

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

  // Sixteen elements in the kernel's form: i16, or with `turned` bits.
  template <bool wide>
  static void convert16(const std::int8_t* from, std::uint64_t turned, void* to) {
    if constexpr (wide) {
      // Of the compiler's own vectors: it unrolls a loop of sixteen before it looks for any.
      using Narrow = std::int8_t __attribute__((vector_size(16)));
      using Wide = std::int16_t __attribute__((vector_size(32)));
      Narrow x;
      std::memcpy(&x, from, 16);
      const Wide wide_x = __builtin_convertvector(x, Wide);
      std::memcpy(to, &wide_x, 32);
    } else {
      std::uint64_t x[2];
      std::memcpy(x, from, 16);
      x[0] ^= turned;
      x[1] ^= turned;
      std::memcpy(to, x, 16);
    }
  }

  // Patches [first, first + rows). Short runs are written sixteen elements at a time, over what comes next.
  template <bool wide>
  void gather(const std::int8_t* from, std::int64_t first, std::int64_t rows, std::byte* to) const {
    using Element = std::conditional_t<wide, std::int16_t, std::uint8_t>;
    auto* rows_of = reinterpret_cast<Element*>(to);
    const std::int64_t end = window.input_elements();
    const auto padding = static_cast<Element>(input_zp + kernel->offset);
    // x + 128 is x with its sign bit turned
    const std::uint64_t turned = kernel->offset == 0 ? 0 : 0x8080808080808080u;
    const auto convert = kernel->convert;
    for_patches(
        window, first, rows, row_bytes / static_cast<std::int64_t>(sizeof(Element)),
        [=](std::int64_t at, std::int64_t where, std::int64_t count) {
          if (count > 128 || at + count + 16 > end) {
            convert(from + at, count, rows_of + where);
          } else {
            for (std::int64_t i = 0; i < count; i += 16) convert16<wide>(from + at + i, turned, rows_of + where + i);
          }
        },
        [=](std::int64_t where, std::int64_t count) { std::fill_n(rows_of + where, count, padding); });
  }
  RowsI8 patches(const std::int8_t* in, std::int64_t first, std::int64_t rows, std::byte* to) const {
    if (window.is_matrix()) return rows_i8(*kernel, weight, in + first * weight.k, rows, to);
    kernel->a_bytes == 2 ? gather<true>(in, first, rows, to) : gather<false>(in, first, rows, to);
    return {to, row_bytes};
  }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = weight.n;
    const RowsI8 a = patches(static_cast<const std::int8_t*>(frame.read(input)), part.first_row, part.rows, memory);
    auto* terms = reinterpret_cast<std::int32_t*>(memory + patch_bytes);
    if (weight_zp != 0) row_terms(*kernel, a, part.rows, weight.k, weight_zp, terms);
    std::byte* tile = memory + patch_bytes + term_bytes;
    multiply(*kernel, part, a, weight_zp != 0 ? terms : nullptr, weight,
             {epilogue.rescaled, &scales, epilogue.output_zp, epilogue.lowest_quantised, epilogue.highest_quantised},
             epilogue.sums(frame, part.first_row * n, tile));
    epilogue.finish(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
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
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  conv->kernel = &gemm_i8(conv->window.rows(), conv->window.k());
  conv->input_zp = only_scalar(planning.graph, node.inputs[3]);
  conv->weight_zp = only_scalar(planning.graph, node.inputs[4]);
  const Value &weight = planning.graph[node.inputs[1]], &bias = planning.graph[node.inputs[2]];
  const std::int64_t k = conv->window.k();
  conv->weight = panels_i8(*conv->kernel, weight.type.shape.size(0), k);
  const Bytes weights = patch_weights(planning.graph, node);
  conv->packed = pack_rows(conv->weight, reinterpret_cast<const std::int8_t*>(weights.data()),
                           lie_as_patches(node) ? &planning.packed_weights->integers : nullptr);
  conv->column_terms.resize(static_cast<std::size_t>(conv->weight.padded()));
  column_terms(conv->weight, conv->packed->sums, reinterpret_cast<const std::int32_t*>(bias.constant.data()),
               bias.type.shape.elements(), conv->input_zp, conv->weight_zp, conv->column_terms.data());
  conv->weight.data = conv->packed->panels.get();
  conv->weight.column_term = conv->column_terms.data();
  conv->epilogue = find_epilogue(planning, n, true);
  if (conv->epilogue.rescaled)
    conv->scales =
        rescale_columns(conv->epilogue.multiplier, conv->epilogue.shift, conv->weight.n, conv->kernel->lanes);
  conv->row_bytes = conv->weight.row_bytes(*conv->kernel);
  const bool chain = conv->epilogue.chain != nullptr;
  conv->sharing = Sharing::plan(conv->window.rows(), conv->kernel->max_rows, conv->weight.count(),
                                conv->row_bytes + (chain ? conv->weight.n * 4 : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->patch_bytes = align_up(rows_i8_bytes(*conv->kernel, conv->weight, block));
  conv->term_bytes = conv->weight_zp != 0 ? align_up(static_cast<std::size_t>(block) * 4) : 0;
  conv->tile_bytes = conv->epilogue.tile_bytes(block * conv->weight.n);
  conv->scratch = conv->patch_bytes + conv->term_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI8>(planning, "conv_i8", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
