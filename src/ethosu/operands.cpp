// SPDX-License-Identifier: Apache-2.0
#include "ethosu/operands.h"

#include <fmt/format.h>

namespace tosaic::ethosu {
namespace {

std::int64_t sign_extend16(std::uint64_t bits) { return static_cast<std::int16_t>(bits); }

Diagnostic reserved(const char* what, std::uint64_t value) {
  return error("ethosu.reserved", fmt::format("{} has the reserved value {}", what, value));
}

Status set_format(Layout& layout, std::uint64_t format, std::uint64_t precision, std::uint64_t type, const char* what) {
  if (format > 1) return reserved(what, format);
  layout.bricks = format == 1;
  layout.type = {static_cast<std::uint8_t>(1 << precision), type == 1};
  return {};
}

// Bits 0 to 2: one element along H, W, C for all; 8: a scalar.
Broadcast broadcast_u85(std::uint64_t bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}

Rounding rounding_u55(std::uint64_t mode) {
  return mode == 0 ? Rounding::double_round : mode == 1 ? Rounding::to_zero : Rounding::natural;
}

}  // namespace

Result<Operand> ifm_operand(const Registers& r, Broadcasts broadcasts) {
  Operand operand;
  Layout& layout = operand.layout;
  TOSAIC_CHECK(set_format(layout, r.get<"IFM_PRECISION", "activation_format">(),
                          r.get<"IFM_PRECISION", "activation_precision">(), r.get<"IFM_PRECISION", "activation_type">(),
                          "the IFM format"));
  operand.storage = static_cast<Storage>(r.get<"IFM_PRECISION", "activation_storage">());
  if (broadcasts == Broadcasts::yes && r.u85() && r.written<"IFM_BROADCAST">())
    operand.broadcast = broadcast_u85(r.get<"IFM_BROADCAST", "broadcast_mode">());
  const std::uint64_t zero = r.get<"IFM_ZERO_POINT", "zero_point">();
  operand.zero_point = layout.type.is_signed ? sign_extend16(zero) : static_cast<std::int64_t>(zero);
  if (operand.storage == Storage::none) operand.broadcast.scalar = true;
  if (operand.broadcast.scalar) {
    operand.scalar = static_cast<std::int64_t>(r.get<"OP_SCALAR", "scalar">());
    return operand;
  }
  layout.region = static_cast<int>(r.get<"IFM_REGION", "region">());
  if (operand.chained()) return operand;
  layout.tiles_3x1 = operand.storage == Storage::tile3x1;
  layout.h0 = static_cast<std::int64_t>(r.get<"IFM_HEIGHT0_M1", "height_m1">()) + 1;
  layout.h1 = static_cast<std::int64_t>(r.get<"IFM_HEIGHT1_M1", "height_m1">()) + 1;
  layout.w0 = static_cast<std::int64_t>(r.get<"IFM_WIDTH0_M1", "width_m1">()) + 1;
  layout.base = {r.signed40<"IFM_BASE0">(), r.signed40<"IFM_BASE1">(), r.signed40<"IFM_BASE2">(),
                 r.signed40<"IFM_BASE3">()};
  layout.stride_x = r.signed40<"IFM_STRIDE_X">();
  layout.stride_y = r.signed40<"IFM_STRIDE_Y">();
  layout.stride_c = layout.bricks ? r.signed40<"IFM_STRIDE_C">() : 0;
  return operand;
}

Result<Operand> ifm2_operand(const Registers& r, Broadcasts broadcasts) {
  Operand operand;
  Layout& layout = operand.layout;
  TOSAIC_CHECK(set_format(layout, r.get<"IFM2_PRECISION", "activation_format">(),
                          r.get<"IFM2_PRECISION", "activation_precision">(),
                          r.get<"IFM2_PRECISION", "activation_type">(), "the IFM2 format"));
  operand.storage = static_cast<Storage>(r.get<"IFM2_PRECISION", "activation_storage">());
  const std::uint64_t zero = r.get<"IFM2_ZERO_POINT", "zero_point">();
  operand.zero_point = layout.type.is_signed ? sign_extend16(zero) : static_cast<std::int64_t>(zero);
  if (r.u85()) {
    if (broadcasts == Broadcasts::yes && r.written<"IFM2_BROADCAST">())
      operand.broadcast = broadcast_u85(r.get<"IFM2_BROADCAST", "broadcast_mode">());
    if (operand.storage == Storage::none) operand.broadcast.scalar = true;
    if (operand.broadcast.scalar) {
      operand.scalar = static_cast<std::int64_t>(r.get<"OP_SCALAR", "scalar">());
      return operand;
    }
  } else {
    operand.broadcast = {r.get<"IFM2_BROADCAST", "broadcast_h">() != 0, r.get<"IFM2_BROADCAST", "broadcast_w">() != 0,
                         r.get<"IFM2_BROADCAST", "broadcast_c">() != 0,
                         r.get<"IFM2_BROADCAST", "broadcast_constant">() != 0};
    if (operand.broadcast.scalar) {
      operand.scalar = static_cast<std::int64_t>(r.get<"IFM2_SCALAR", "scalar">());
      return operand;
    }
  }
  layout.region = static_cast<int>(r.get<"IFM2_REGION", "region">());
  if (operand.chained()) return operand;
  layout.tiles_3x1 = operand.storage == Storage::tile3x1;
  layout.h0 = static_cast<std::int64_t>(r.get<"IFM2_HEIGHT0_M1", "height_m1">()) + 1;
  layout.h1 = static_cast<std::int64_t>(r.get<"IFM2_HEIGHT1_M1", "height_m1">()) + 1;
  layout.w0 = static_cast<std::int64_t>(r.get<"IFM2_WIDTH0_M1", "width_m1">()) + 1;
  layout.base = {r.signed40<"IFM2_BASE0">(), r.signed40<"IFM2_BASE1">(), r.signed40<"IFM2_BASE2">(),
                 r.signed40<"IFM2_BASE3">()};
  layout.stride_x = r.signed40<"IFM2_STRIDE_X">();
  layout.stride_y = r.signed40<"IFM2_STRIDE_Y">();
  layout.stride_c = layout.bricks ? r.signed40<"IFM2_STRIDE_C">() : 0;
  return operand;
}

Result<Output> ofm_operand(const Registers& r) {
  Output out;
  Layout& layout = out.layout;
  TOSAIC_CHECK(set_format(layout, r.get<"OFM_PRECISION", "activation_format">(),
                          r.get<"OFM_PRECISION", "activation_precision">(), r.get<"OFM_PRECISION", "activation_type">(),
                          "the OFM format"));
  out.storage = static_cast<Storage>(r.get<"OFM_PRECISION", "activation_storage">());
  out.shape = {static_cast<std::int64_t>(r.get<"OFM_HEIGHT_M1", "height_m1">()) + 1,
               static_cast<std::int64_t>(r.get<"OFM_WIDTH_M1", "width_m1">()) + 1,
               static_cast<std::int64_t>(r.get<"OFM_DEPTH_M1", "depth_m1">()) + 1};
  const std::uint64_t zero = r.get<"OFM_ZERO_POINT", "zero_point">();
  out.zero_point = layout.type.is_signed ? sign_extend16(zero) : static_cast<std::int64_t>(zero);
  if (mutated("ofm.zero_point")) out.zero_point = 0;
  const std::uint64_t transpose = r.get<"OFM_PRECISION", "activation_transpose">();
  if (transpose == 4 || transpose == 5) return reserved("the OFM transpose", transpose);
  out.transpose = mutated("transpose.ignored") ? Transpose::hwc : static_cast<Transpose>(transpose);
  out.reverse =
      mutated("reverse.ignored") ? Reverse::none : static_cast<Reverse>(r.get<"OFM_PRECISION", "activation_reverse">());
  if (out.storage == Storage::none) return out;
  layout.region = static_cast<int>(r.get<"OFM_REGION", "region">());
  if (out.chained()) return out;
  layout.tiles_3x1 = out.storage == Storage::tile3x1;
  layout.h0 = static_cast<std::int64_t>(r.get<"OFM_HEIGHT0_M1", "height_m1">()) + 1;
  layout.h1 = static_cast<std::int64_t>(r.get<"OFM_HEIGHT1_M1", "height_m1">()) + 1;
  layout.w0 = static_cast<std::int64_t>(r.get<"OFM_WIDTH0_M1", "width_m1">()) + 1;
  layout.base = {r.signed40<"OFM_BASE0">(), r.signed40<"OFM_BASE1">(), r.signed40<"OFM_BASE2">(),
                 r.signed40<"OFM_BASE3">()};
  layout.stride_x = r.signed40<"OFM_STRIDE_X">();
  layout.stride_y = r.signed40<"OFM_STRIDE_Y">();
  layout.stride_c = layout.bricks ? r.signed40<"OFM_STRIDE_C">() : 0;
  if (mutated("brick.stride") && layout.bricks) layout.stride_c -= 16;
  return out;
}

Result<Kernel> kernel_of(const Registers& r) {
  Kernel k;
  k.dilation_x = static_cast<std::int64_t>(r.get<"KERNEL_STRIDE", "dilation_x">()) + 1;
  k.dilation_y = static_cast<std::int64_t>(r.get<"KERNEL_STRIDE", "dilation_y">()) + 1;
  const auto w = static_cast<std::int64_t>(r.get<"KERNEL_WIDTH_M1", "width_m1">());
  const auto h = static_cast<std::int64_t>(r.get<"KERNEL_HEIGHT_M1", "height_m1">());
  if (w % k.dilation_x || h % k.dilation_y)
    return error("ethosu.kernel", fmt::format("a dilated kernel of {}x{} with dilation {}x{}", h + 1, w + 1,
                                              k.dilation_y, k.dilation_x));
  k.w = w / k.dilation_x + 1;
  k.h = h / k.dilation_y + 1;
  k.stride_x = 1 + static_cast<std::int64_t>(r.get<"KERNEL_STRIDE", "stride_x_lsb">() +
                                             2 * r.get<"KERNEL_STRIDE", "stride_x_msb">());
  k.stride_y = 1 + static_cast<std::int64_t>(r.get<"KERNEL_STRIDE", "stride_y_lsb">() +
                                             2 * r.get<"KERNEL_STRIDE", "stride_y_msb">());
  k.part_kernel_first = r.get<"KERNEL_STRIDE", "weight_order">() != 0;
  k.decomposed = r.get<"KERNEL_STRIDE", "decomposition">() != 0;
  return k;
}

Padding padding_of(const Registers& r) {
  return {static_cast<std::int64_t>(r.get<"IFM_PAD_TOP", "pad">()),
          static_cast<std::int64_t>(r.get<"IFM_PAD_LEFT", "pad">()),
          static_cast<std::int64_t>(r.get<"IFM_PAD_RIGHT", "pad">()),
          static_cast<std::int64_t>(r.get<"IFM_PAD_BOTTOM", "pad">())};
}

Result<Upscale> upscale_of(const Registers& r) {
  const std::uint64_t mode = r.get<"IFM_UPSCALE", "mode">();
  if (mode > 2) return reserved("the IFM upscale mode", mode);
  return static_cast<Upscale>(mode);
}

std::int64_t ifm_depth(const Registers& r) {
  return static_cast<std::int64_t>(r.get<"IFM_DEPTH_M1", "depth_m1">()) + 1;
}

Result<Shape3> window_extent(const Shape3& ofm, const Kernel& k, const Padding& pad, std::int64_t depth) {
  const std::int64_t h = (ofm.h - 1) * k.stride_y + k.extent_h() - pad.top - pad.bottom;
  const std::int64_t w = (ofm.w - 1) * k.stride_x + k.extent_w() - pad.left - pad.right;
  if (h <= 0 || w <= 0)
    return error("ethosu.shape", fmt::format("an OFM of {}x{} with kernel {}x{} and pads {},{},{},{} leaves no input",
                                             ofm.h, ofm.w, k.h, k.w, pad.top, pad.left, pad.bottom, pad.right));
  return Shape3{h, w, depth};
}

Result<Rounding> ofm_rounding(const Registers& r) {
  if (!r.u85()) {
    const std::uint64_t mode = r.get<"OFM_PRECISION", "round_mode">();
    if (mode > 2) return reserved("the OFM rounding mode", mode);
    return rounding_u55(mode);
  }
  const std::uint64_t mode = r.get<"OFM_SCALE", "round_mode">();
  if (mode > 5) return reserved("the OFM rounding mode", mode);
  return static_cast<Rounding>(mode);
}

Result<Rounding> ifm_rounding(const Registers& r) {
  const std::uint64_t mode = r.get<"IFM_PRECISION", "round_mode">();
  if (mode > 2) return reserved("the IFM rounding mode", mode);
  return rounding_u55(mode);
}

Scale ofm_scale(const Registers& r) {
  return {static_cast<std::uint32_t>(r.get<"OFM_SCALE", "scale">()),
          static_cast<std::uint8_t>(r.get<"OFM_SCALE", "shift">()),
          static_cast<std::uint8_t>(r.u85() ? r.get<"OFM_SCALE", "dbl_rnd">() : 0)};
}

Shape3 Output::stored_shape() const {
  const auto [h, w, c] = shape;
  switch (transpose) {
    case Transpose::hwc: break;
    case Transpose::whc: return {w, h, c};
    case Transpose::hcw: return {h, c, w};
    case Transpose::wch: return {w, c, h};
    case Transpose::chw: return {c, h, w};
    case Transpose::cwh: return {c, w, h};
  }
  return shape;
}

}  // namespace tosaic::ethosu
