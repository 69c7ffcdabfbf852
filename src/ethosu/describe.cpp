// SPDX-License-Identifier: Apache-2.0
// Words for commands: listings, traces, and how much memory a stream reaches.
#include <fmt/format.h>
#include <algorithm>

#include "ethosu/machine.h"

namespace tosaic::ethosu {
namespace {

constexpr std::uint16_t op_conv = 2, op_depthwise = 3, op_pool = 5, op_elementwise = 6, op_resize = 7,
                        op_dma_start = 0x10;
constexpr std::uint32_t unary_modes[] = {5, 6, 7, 36};

bool computes(const Command& c) {
  return c.row->width == Width::one_word && c.row->opcode >= op_conv && c.row->opcode <= op_resize;
}
bool has_window(const Command& c) { return c.row->opcode != op_elementwise && c.row->opcode != op_resize; }
bool broadcasts(const Command& c) { return c.row->opcode == op_elementwise; }
bool weights_in_ifm2(const Registers& r, const Command& c) {
  return r.u85() && c.row->opcode == op_conv && (c.value & 1);
}
bool sums_in_ifm2(const Registers& r, const Command& c) {
  return r.u85() && (has_window(c)) && r.get<"ACC_FORMAT", "acc_input">() == 2;
}
bool takes_two(const Registers& r, const Command& c) {
  if (!broadcasts(c)) return weights_in_ifm2(r, c) || sums_in_ifm2(r, c);
  for (const std::uint32_t mode : unary_modes)
    if ((c.value & 63) == mode) return false;
  return true;
}

std::string text_of(const Operand& operand, const Shape3& shape) {
  const ElementType type = operand.layout.type;
  if (operand.broadcast.scalar)
    return fmt::format("scalar {} {}{}", operand.scalar, type.is_signed ? "i" : "u", 8 * type.bytes);
  const std::string where = operand.chained() ? fmt::format("chain {}", operand.layout.region)
                            : operand.storage == Storage::none
                                ? std::string("nowhere")
                                : fmt::format("{}:{:#x}", operand.layout.region, operand.layout.base[0]);
  return fmt::format("{}x{}x{} {}{} {} {} zp {}", shape.h, shape.w, shape.c, type.is_signed ? "i" : "u", 8 * type.bytes,
                     operand.layout.bricks ? "nhcwb16" : "nhwc", where, operand.zero_point);
}

struct Maps {
  Result<Output> ofm;
  Result<Operand> ifm, ifm2;
  Shape3 ifm_shape, ifm2_shape;
};

Shape3 stretched(const Shape3& shape, const Broadcast& b) {
  return {b.h ? 1 : shape.h, b.w ? 1 : shape.w, b.c ? 1 : shape.c};
}

Maps maps_of(const Registers& r, const Command& command) {
  const Broadcasts stretches = broadcasts(command) ? Broadcasts::yes : Broadcasts::no;
  Maps maps{ofm_operand(r), ifm_operand(r, stretches), ifm2_operand(r, stretches), {}, {}};
  if (!maps.ofm.ok() || !maps.ifm.ok()) return maps;
  const Shape3& shape = maps.ofm->shape;
  maps.ifm_shape = stretched(shape, maps.ifm->broadcast);
  if (maps.ifm2.ok()) maps.ifm2_shape = stretched(shape, maps.ifm2->broadcast);
  if (weights_in_ifm2(r, command)) maps.ifm2_shape = {1, shape.c, ifm_depth(r)};
  const auto kernel = kernel_of(r);
  if (has_window(command) && kernel.ok()) {
    const bool deep = command.row->opcode == op_conv || (command.row->opcode == op_pool && (command.value & 7) == 2);
    const auto window = window_extent(shape, *kernel, padding_of(r), deep ? ifm_depth(r) : shape.c);
    const auto upscale = upscale_of(r);
    if (window.ok()) maps.ifm_shape = *window;
    if (upscale.ok() && *upscale != Upscale::none)
      maps.ifm_shape.h = (maps.ifm_shape.h + 1) / 2, maps.ifm_shape.w = (maps.ifm_shape.w + 1) / 2;
  }
  return maps;
}

// One past the highest byte that each end of a DMA reaches, and its index list (0: none).
struct DmaReach {
  std::int64_t source = 0, target = 0, list = 0;
};
DmaReach dma_reach(const Registers& r) {
  const std::uint64_t dimensions = r.get<"DMA0_SRC_REGION", "stride_mode">();
  const std::int64_t bytes = r.signed40<"DMA0_LEN">();
  DmaReach reach{r.signed40<"DMA0_SRC">() + bytes, r.signed40<"DMA0_DST">() + bytes, 0};
  if (!r.u85()) return reach;
  const auto runs = dimensions >= 1 ? static_cast<std::int64_t>(r.get<"DMA0_SIZE0", "size">()) : 1;
  const auto boxes = dimensions >= 2 ? static_cast<std::int64_t>(r.get<"DMA0_SIZE1", "size">()) : 1;
  const bool gathers = r.get<"DMA0_SRC_REGION", "idx_mode">() == 1;
  const bool scatters = r.get<"DMA0_DST_REGION", "idx_mode">() == 1;
  const auto most = static_cast<std::int64_t>(r.get<"DMA0_IDX_MAX", "idx_max">());
  const auto up = [](std::int64_t steps, std::int64_t stride) {
    return std::max<std::int64_t>(0, bounded(Wide{steps} * stride));
  };
  if (dimensions >= 1 || gathers) reach.source += up(gathers ? most : runs - 1, r.signed40<"DMA0_SRC_STRIDE0">());
  if (dimensions >= 1 || scatters) reach.target += up(scatters ? most : runs - 1, r.signed40<"DMA0_DST_STRIDE0">());
  if (dimensions >= 2) {
    reach.source += up(boxes - 1, r.signed40<"DMA0_SRC_STRIDE1">());
    reach.target += up(boxes - 1, r.signed40<"DMA0_DST_STRIDE1">());
  }
  if (gathers || scatters) reach.list = r.signed40<"DMA0_IDX">() + 4 * runs * boxes;
  return reach;
}

}  // namespace

std::string describe_fields(bool u85, const Command& command) {
  std::string text;
  for (const Field& field : fields_of(*command.row)) {
    if (field.bits == 0) continue;
    const std::uint64_t value = command.value >> field.low & ((std::uint64_t{1} << field.bits) - 1);
    const std::string_view name = value_name(u85, *command.row, field, static_cast<std::uint32_t>(value));
    if (!text.empty()) text += ' ';
    text += field.bits > 31 ? fmt::format("{}={:#x}", field.name, value)
            : name.empty()  ? fmt::format("{}={}", field.name, value)
                            : fmt::format("{}={}", field.name, name);
  }
  return text;
}

OperationLine describe_operation(const Config& config, const Registers& r, const Command& command) {
  OperationLine line{command.byte, std::string(command.row->name.substr(3)), {}};
  const Row& row = *command.row;
  if (row.width == Width::one_word &&
      (row.opcode == op_pool || row.opcode == op_elementwise || row.opcode == op_resize)) {
    const Field field = fields_of(row)[0];
    const auto mode = static_cast<std::uint32_t>(command.value & ((1u << field.bits) - 1));
    const std::string_view name = value_name(config.u85(), row, field, mode);
    line.name = row.opcode == op_elementwise ? std::string(name) : fmt::format("{} {}", line.name, name);
    if (name.empty()) line.name = fmt::format("{} mode {}", row.name.substr(3), mode);
  }
  if (row.width == Width::one_word && row.opcode == op_dma_start) {
    const auto side = [](bool internal, std::uint64_t region, std::int64_t address) {
      return internal ? fmt::format("internal:{:#x}", address) : fmt::format("{}:{:#x}", region, address);
    };
    line.text = fmt::format("{} bytes {} -> {}", r.signed40<"DMA0_LEN">(),
                            side(r.get<"DMA0_SRC_REGION", "region_mode">() == 1, r.get<"DMA0_SRC_REGION", "region">(),
                                 r.signed40<"DMA0_SRC">()),
                            side(r.get<"DMA0_DST_REGION", "region_mode">() == 1, r.get<"DMA0_DST_REGION", "region">(),
                                 r.signed40<"DMA0_DST">()));
    return line;
  }
  if (!computes(command)) return line;
  const Maps maps = maps_of(r, command);
  if (!maps.ofm.ok() || !maps.ifm.ok()) return line;
  line.text = fmt::format("ifm {}", text_of(*maps.ifm, maps.ifm_shape));
  if (takes_two(r, command) && maps.ifm2.ok())
    line.text += fmt::format(", ifm2 {}", text_of(*maps.ifm2, maps.ifm2_shape));
  line.text += fmt::format(" -> ofm {}", text_of(*maps.ofm, maps.ofm->shape));
  const auto kernel = kernel_of(r);
  if (has_window(command) && kernel.ok() &&
      (kernel->h != 1 || kernel->w != 1 || kernel->stride_y != 1 || kernel->stride_x != 1))
    line.text += fmt::format(", kernel {}x{} stride {}x{} dilation {}x{}", kernel->h, kernel->w, kernel->stride_y,
                             kernel->stride_x, kernel->dilation_y, kernel->dilation_x);
  if (row.opcode == op_conv || row.opcode == op_depthwise)
    line.text +=
        fmt::format(", weights {}:{:#x}+{}, scales {}:{:#x}+{}", r.get<"WEIGHT_REGION", "region">(),
                    r.signed40<"WEIGHT_BASE">(), r.get<"WEIGHT_LENGTH", "length">(), r.get<"SCALE_REGION", "region">(),
                    r.signed40<"SCALE_BASE">(), r.get<"SCALE_LENGTH", "length">());
  return line;
}

void measure_operation(const Config& config, const Registers& r, const Command& command, Requirements& requirements) {
  const auto reach = [&](int region, std::int64_t high, bool written) {
    if (region < 0 || region >= max_regions || high <= 0) return;
    const auto i = static_cast<std::size_t>(region);
    requirements.region_bytes[i] = std::max(requirements.region_bytes[i], static_cast<std::uint64_t>(high));
    requirements.written[i] = requirements.written[i] || written;
  };
  const auto reach_map = [&](const Operand& operand, const Shape3& shape, bool written) {
    if (operand.broadcast.scalar || operand.chained() || operand.storage == Storage::none) return;
    const auto extent = extent_of(operand.layout, shape, "map");
    if (extent.ok()) reach(operand.layout.region, extent->high, written);
  };
  if (command.row->width == Width::one_word && command.row->opcode == op_dma_start) {
    const DmaReach dma = dma_reach(r);
    if (r.get<"DMA0_SRC_REGION", "region_mode">() == 0)
      reach(static_cast<int>(r.get<"DMA0_SRC_REGION", "region">()), dma.source, false);
    if (r.get<"DMA0_DST_REGION", "region_mode">() == 0)
      reach(static_cast<int>(r.get<"DMA0_DST_REGION", "region">()), dma.target, true);
    if (dma.list > 0) reach(static_cast<int>(r.get<"DMA0_IDX_REGION", "region">()), dma.list, false);
  }
  if (!computes(command)) return;
  const Maps maps = maps_of(r, command);
  if (!maps.ofm.ok() || !maps.ifm.ok()) return;
  reach_map(*maps.ofm, maps.ofm->stored_shape(), true);
  reach_map(*maps.ifm, maps.ifm_shape, false);
  if (takes_two(r, command) && maps.ifm2.ok()) reach_map(*maps.ifm2, maps.ifm2_shape, false);
  // One stream for each core or decoder; those that no command has named yet are not used.
  const auto reach_stream = [&](std::uint64_t region, std::int64_t base, std::uint64_t length) {
    if (length) reach(static_cast<int>(region), base + static_cast<std::int64_t>(length), false);
  };
  const std::uint64_t weights = r.get<"WEIGHT_REGION", "region">(), scales = r.get<"SCALE_REGION", "region">();
  const bool weighted = command.row->opcode == op_conv || command.row->opcode == op_depthwise;
  if (weighted || (command.row->opcode == op_pool && r.get<"OFM_PRECISION", "scale_mode">() == 0)) {
    reach_stream(scales, r.signed40<"SCALE_BASE">(), r.get<"SCALE_LENGTH", "length">());
    if (config.cores > 1) reach_stream(scales, r.signed40<"SCALE1_BASE">(), r.get<"SCALE1_LENGTH", "length">());
  }
  if (!weighted) return;
  reach_stream(weights, r.signed40<"WEIGHT_BASE">(), r.get<"WEIGHT_LENGTH", "length">());
  if (config.weight_streams() > 1)
    reach_stream(weights, r.signed40<"WEIGHT1_BASE">(), r.get<"WEIGHT1_LENGTH", "length">());
  if (config.weight_streams() > 2) {
    reach_stream(weights, r.signed40<"WEIGHT2_BASE">(), r.get<"WEIGHT2_LENGTH", "length">());
    reach_stream(weights, r.signed40<"WEIGHT3_BASE">(), r.get<"WEIGHT3_LENGTH", "length">());
  }
}

}  // namespace tosaic::ethosu
