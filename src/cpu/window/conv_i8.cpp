// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <type_traits>

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_i8.h"
#include "cpu/window/conv.h"
#include "cpu/window/packed_conv_i8.h"
#include "cpu/window/window.h"

namespace tosaic::cpu {
namespace {

struct ConvI8 {
  Window window;
  std::vector<PackedConvI8> groups;  // of channels
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value;
  std::int32_t input_zp = 0, weight_zp = 0;
  std::int64_t row_bytes = 0;  // of a row of patches in the kernel's form
  std::size_t patch_bytes = 0, term_bytes = 0, tile_bytes = 0, scratch = 0;
  const GemmI8* kernel = nullptr;

  const PanelsI8& panels() const { return groups[0].weight; }
  std::int64_t columns() const { return std::ssize(groups) * panels().n; }

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
  // `channel`: the group's first.
  template <bool wide, bool in_one_run>
  void gather(const std::int8_t* from, std::int64_t channel, std::int64_t first, std::int64_t rows,
              std::byte* to) const {
    using Element = std::conditional_t<wide, std::int16_t, std::uint8_t>;
    auto* rows_of = reinterpret_cast<Element*>(to);
    const std::int64_t end = window.input_elements() - channel;
    from += channel;
    const auto padding = static_cast<Element>(input_zp + kernel->offset);
    // x + 128 is x with its sign bit turned
    const std::uint64_t turned = kernel->offset == 0 ? 0 : 0x8080808080808080u;
    const auto convert = kernel->convert;
    for_patches_of<in_one_run>(
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
  // A function of its own, in which the compiler has registers for what each run asks for.
  template <bool in_one_run>
  [[gnu::noinline]] void gather_bytes(const std::int8_t* from, std::int64_t channel, std::int64_t first,
                                      std::int64_t rows, std::byte* to) const {
    gather<false, in_one_run>(from, channel, first, rows, to);
  }
  RowsI8 patches(const std::int8_t* in, std::int64_t channel, std::int64_t first, std::int64_t rows,
                 std::byte* to) const {
    if (window.is_matrix() && groups.size() == 1) return rows_i8(*kernel, panels(), in + first * panels().k, rows, to);
    const bool wide = kernel->a_bytes == 2;
    if (window.in_one_run())
      wide ? gather<true, true>(in, channel, first, rows, to) : gather_bytes<true>(in, channel, first, rows, to);
    else
      wide ? gather<true, false>(in, channel, first, rows, to) : gather_bytes<false>(in, channel, first, rows, to);
    return {to, row_bytes};
  }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    const std::int64_t n = columns();
    std::byte* tile = memory + patch_bytes + term_bytes;
    std::byte* c = epilogue.sums(frame, part.first_row * n, tile);
    const auto* in = static_cast<const std::int8_t*>(frame.read(input));
    if (groups.size() == 1) multiply_group(0, part, in, memory, c);
    // Of several a part has some, as a whole.
    for (std::int64_t g = part.first_panel; groups.size() > 1 && g < part.last_panel; ++g)
      multiply_group(g, {part.first_row, part.rows, 0, panels().count()}, in, memory,
                     c + g * panels().n * epilogue.element);
    epilogue.finish(frame, part.first_row * n, (part.first_row + part.rows) * n, tile, tile + tile_bytes);
  }
  void multiply_group(std::int64_t g, const Sharing::Part& part, const std::int8_t* in, std::byte* memory,
                      std::byte* c) const {
    const PackedConvI8& group = groups[static_cast<std::size_t>(g)];
    const RowsI8 a = patches(in, g * window.channels, part.first_row, part.rows, memory);
    auto* terms = reinterpret_cast<std::int32_t*>(memory + patch_bytes);
    if (weight_zp != 0) row_terms(*kernel, a, part.rows, group.weight.k, weight_zp, terms);
    multiply(*kernel, part, a, weight_zp != 0 ? terms : nullptr, group.weight, group.rescale(epilogue), c, columns());
  }
};

}  // namespace

bool take_conv_i8(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (!is_convolution_of_i8(planning.graph, node)) return false;
  auto conv = std::make_shared<ConvI8>();
  conv->input = node.inputs[0];
  conv->window = window_of(planning.graph, node);
  conv->kernel = &gemm_i8(conv->window.rows(), conv->window.k());
  conv->input_zp = only_scalar(planning.graph, node.inputs[3]);
  conv->weight_zp = only_scalar(planning.graph, node.inputs[4]);
  conv->groups = pack_conv_i8(planning, node, conv->window, *conv->kernel);
  give_back_joined(planning, node, conv->window);
  conv->epilogue = find_epilogue(planning, n, true);
  pack_scales(conv->epilogue, *conv->kernel, conv->groups);
  conv->row_bytes = conv->panels().row_bytes(*conv->kernel);
  const bool chain = conv->epilogue.chain != nullptr;
  const std::int64_t groups = conv->window.groups();
  conv->sharing =
      Sharing::plan(conv->window.rows(), conv->kernel->max_rows, groups > 1 ? groups : conv->panels().count(),
                    conv->row_bytes + (chain ? conv->columns() * 4 : 0), planning.threads, chain);
  const std::int64_t block = conv->sharing.rows_per_task;
  conv->patch_bytes = align_up(rows_i8_bytes(*conv->kernel, conv->panels(), block));
  conv->term_bytes = conv->weight_zp != 0 ? align_up(static_cast<std::size_t>(block) * 4) : 0;
  conv->tile_bytes = conv->epilogue.tile_bytes(block * conv->columns());
  conv->scratch = conv->patch_bytes + conv->term_bytes + conv->tile_bytes + conv->epilogue.chain_bytes();
  add_shared_step<ConvI8>(planning, "conv_i8", n, std::move(conv));
  return true;
}

}  // namespace tosaic::cpu
