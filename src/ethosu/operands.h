// SPDX-License-Identifier: Apache-2.0
// From registers to operands: shapes, layouts, zero points, kernel and scales of the operation that starts now.
#pragma once
#include "ethosu/memory.h"
#include "ethosu/registers.h"
#include "ethosu/scaling.h"

namespace tosaic::ethosu {

enum class Storage : std::uint8_t { tile2x2, tile3x1, chained, none };

struct Broadcast {
  bool h = false, w = false, c = false, scalar = false;
};

struct Operand {
  Layout layout;
  Storage storage = Storage::tile2x2;
  std::int64_t zero_point = 0;
  Broadcast broadcast;
  std::int64_t scalar = 0;  // raw bits, when broadcast.scalar
  bool chained() const { return storage == Storage::chained; }
};

struct Kernel {
  std::int64_t h = 1, w = 1;  // taps
  std::int64_t stride_y = 1, stride_x = 1, dilation_y = 1, dilation_x = 1;
  bool part_kernel_first = false, decomposed = false;
  std::int64_t extent_h() const { return (h - 1) * dilation_y + 1; }
  std::int64_t extent_w() const { return (w - 1) * dilation_x + 1; }
};

struct Padding {
  std::int64_t top = 0, left = 0, right = 0, bottom = 0;
  bool any() const { return top || left || right || bottom; }
};

enum class Upscale : std::uint8_t { none, nearest, zeros };

enum class Transpose : std::uint8_t { hwc = 0, whc = 1, hcw = 2, wch = 3, chw = 6, cwh = 7 };
enum class Reverse : std::uint8_t { none, h, w, c };

struct Output : Operand {
  Shape3 shape;  // in operation order
  Transpose transpose = Transpose::hwc;
  Reverse reverse = Reverse::none;
  Shape3 stored_shape() const;  // in memory order, after the transpose
};

// All of these read registers only; a register never written is noticed by the caller (Registers::missing).
// Only elementwise operations broadcast: for all others the broadcast registers hold what the last of those wanted
// (U85).
enum class Broadcasts : std::uint8_t { no, yes };
Result<Operand> ifm_operand(const Registers& registers, Broadcasts broadcasts);
Result<Operand> ifm2_operand(const Registers& registers, Broadcasts broadcasts);
Result<Output> ofm_operand(const Registers& registers);
Result<Kernel> kernel_of(const Registers& registers);
Padding padding_of(const Registers& registers);
Result<Upscale> upscale_of(const Registers& registers);
std::int64_t ifm_depth(const Registers& registers);
// What the operation reads of its IFM, before upscaling was undone: from OFM, kernel, strides and pads.
Result<Shape3> window_extent(const Shape3& ofm, const Kernel& kernel, const Padding& padding, std::int64_t depth);

// The rounding of the result: a field of OFM_PRECISION (U55, U65) or of OFM_SCALE (U85).
Result<Rounding> ofm_rounding(const Registers& registers);
Result<Rounding> ifm_rounding(const Registers& registers);
Scale ofm_scale(const Registers& registers);

}  // namespace tosaic::ethosu
