// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/quantised_product.h"

#include "cpu/matrix/epilogue.h"
#include "cpu/matrix/gemm_f32.h"
#include "cpu/matrix/quantised_weight.h"
#include "ops/definitions/extension.h"

namespace tosaic::cpu {
namespace {

// From so many rows on, widening a panel to floats costs less than the floats' own kernel saves.
constexpr std::int64_t rows_to_widen = 16;

struct QuantisedProduct {
  std::shared_ptr<const QuantisedWeight> weight;
  const QuantisedPanels* panels = nullptr;  // its own
  std::vector<float> bias;                  // padded to whole panels
  Epilogue epilogue;
  Sharing sharing;
  ValueId input = no_value, scale = no_value, zero = no_value;
  bool int8 = false;    // of activations
  bool widens = false;  // panels become floats, for the floats' kernel
  std::size_t rows_bytes = 0, tile_bytes = 0, scratch = 0;
  const QuantisedGemm* kernel = &quantised_gemm();
  const GemmF32* wide = &gemm_f32();

  std::int64_t value_bytes_of_row() const { return panels->k * kernel->bytes_of_value(panels->bits); }
  std::int64_t row_bytes() const { return int8 ? value_bytes_of_row() + panels->groups() * 4 : panels->k * 4; }
  std::int64_t panel_count() const {  // of the kernel in use
    return widens ? (panels->n + 2 * wide->lanes - 1) / (2 * wide->lanes) : panels->count();
  }
  std::size_t rows_scratch() const {
    const auto rows = static_cast<std::size_t>(sharing.rows_per_task), k = static_cast<std::size_t>(panels->k);
    if (widens) return align_up(k * static_cast<std::size_t>(wide->lanes) * 8);
    if (!int8) return 0;
    return align_up(rows * static_cast<std::size_t>(value_bytes_of_row())) +
           align_up(rows * static_cast<std::size_t>(panels->groups()) * 4);
  }

  void run_widened(const Frame& frame, const Sharing::Part& part, float* c, std::byte* memory) const {
    PanelsF32 one;
    one.k = panels->k;
    one.n = panels->n;
    one.lanes = wide->lanes;
    one.bias = bias.data();
    auto* floats = reinterpret_cast<float*>(memory);
    const auto* a = static_cast<const float*>(frame.read(input)) + part.first_row * panels->k;
    for (std::int64_t p = part.first_panel; p < part.last_panel; ++p) {
      const int width = one.width(p);
      for (int v = 0; v * wide->lanes < width; ++v) kernel->widen(*panels, 2 * p + v, floats + v * wide->lanes, width);
      one.data = floats - p * one.panel_width() * one.k;  // panel(p) is `floats`
      multiply(*wide, sharing, {part.first_row, part.rows, p, p + 1}, {a, panels->k}, one, epilogue.lowest,
               epilogue.highest, c);
    }
  }

  void run_quantised(const Frame& frame, const Sharing::Part& part, float* c, std::byte* memory) const {
    QuantisedCall call{.b = panels,
                       .bias = bias.data(),
                       .lowest = epilogue.lowest,
                       .highest = epilogue.highest,
                       .c_stride = panels->n};
    const std::byte* a = static_cast<const std::byte*>(frame.read(input)) + part.first_row * panels->k * (int8 ? 1 : 4);
    call.a_stride = panels->k * 4;
    std::int32_t* sums = nullptr;
    if (int8) {
      call.a_stride = value_bytes_of_row();
      sums = reinterpret_cast<std::int32_t*>(memory +
                                             align_up(static_cast<std::size_t>(sharing.rows_per_task * call.a_stride)));
      const auto* from = reinterpret_cast<const std::int8_t*>(a);
      kernel->convert(panels->bits, from, part.rows * panels->k, memory);
      for (std::int64_t r = 0; r < part.rows; ++r)
        group_sums(*panels, from + r * panels->k, sums + r * panels->groups());
      a = memory;
    }
    const auto by_row = [&](ValueId v, std::int64_t row) {
      return v == no_value ? nullptr : static_cast<const float*>(frame.read(v)) + part.first_row + row;
    };
    for (call.panel = part.first_panel; call.panel < part.last_panel; ++call.panel)
      sharing.for_groups(part.rows, [&](std::int64_t first, std::int64_t count) {
        call.rows = static_cast<int>(count);
        call.a = a + first * call.a_stride;
        call.c = c + first * panels->n;
        if (!int8) return kernel->floats(call);
        call.sums = sums + first * panels->groups();
        call.scale = by_row(scale, first);  // null: 1
        call.zero = by_row(zero, first);
        kernel->int8(call);
      });
  }

  void prepare(const Frame& frame) const { weight->pack(frame.pool); }
  void run_task(const Frame& frame, std::int64_t task, std::byte* memory) const {
    const auto part = sharing.part(task);
    std::byte* tile = memory + rows_bytes;
    auto* c = reinterpret_cast<float*>(epilogue.sums(frame, part.first_row * panels->n, tile));
    widens ? run_widened(frame, part, c, memory) : run_quantised(frame, part, c, memory);
    epilogue.finish(frame, part.first_row * panels->n, (part.first_row + part.rows) * panels->n, tile,
                    tile + tile_bytes);
  }
};

}  // namespace

bool take_quantised_product(Planning& planning, std::uint32_t n) {
  namespace operands = extension::scaled_product;
  const Node& node = planning.node(n);
  if (node.op != extension::op::scaled_product) return false;
  auto product = std::make_shared<QuantisedProduct>();
  product->weight = quantised_weight(planning, node);
  product->panels = &product->weight->panels();
  const QuantisedPanels& weight = *product->panels;
  const Value& bias = planning.graph[node.inputs[operands::bias]];
  const std::span<const float> given = bias.constant.as<float>();
  product->bias.resize(static_cast<std::size_t>(weight.count() * weight.lanes));
  for (std::size_t j = 0; j < static_cast<std::size_t>(weight.n); ++j)
    product->bias[j] = given[given.size() == 1 ? 0 : j];
  product->input = node.inputs[operands::input];
  product->int8 = planning.type(product->input).dtype == DType::i8;
  if (node.inputs.size() > operands::row_scale) product->scale = node.inputs[operands::row_scale];
  if (node.inputs.size() > operands::row_zero) product->zero = node.inputs[operands::row_zero];
  const std::int64_t rows = planning.type(node.outputs[0]).shape.elements() / weight.n;
  product->widens = !product->int8 && rows >= rows_to_widen;
  product->epilogue = find_epilogue(planning, n, false,
                                    !shares_columns(planning, rows, product->kernel->max_rows, weight.n * weight.k));
  const bool chain = product->epilogue.chain != nullptr;
  product->sharing =
      Sharing::plan(rows, product->widens ? product->wide->max_rows : product->kernel->max_rows, product->panel_count(),
                    product->row_bytes() + (chain ? weight.n * 4 : 0), planning.threads, chain);
  product->rows_bytes = product->rows_scratch();
  product->tile_bytes = product->epilogue.tile_bytes(product->sharing.rows_per_task * weight.n);
  product->scratch = product->rows_bytes + product->tile_bytes + product->epilogue.chain_bytes();
  Step step{.kernel = product->int8 ? "coded_i8" : "coded_f32", .nodes = {n}, .reads = {product->input}};
  for (ValueId v : {product->scale, product->zero})
    if (v != no_value) step.reads.push_back(v);
  add_shared_step(planning, std::move(step), std::shared_ptr<const QuantisedProduct>(std::move(product)));
  return true;
}

}  // namespace tosaic::cpu
