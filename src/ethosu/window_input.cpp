// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>

#include "ethosu/operations.h"

namespace tosaic::ethosu {

Result<WindowInput> WindowInput::create(Context& context, const OutputStage& out, const Kernel& kernel,
                                        std::int64_t depth) {
  const Registers& r = context.registers;
  WindowInput in;
  TOSAIC_TRY(in.operand_, ifm_operand(r, Broadcasts::no));
  TOSAIC_TRY(in.upscale_, upscale_of(r));
  in.padding_ = padding_of(r);
  TOSAIC_TRY(in.window_, window_extent(out.shape(), kernel, in.padding_, depth));
  if (in.operand_.broadcast.scalar) return error("ethosu.undecidable", "a scalar IFM of an operation with a window");
  if (in.operand_.layout.type.bytes == 8) return error("ethosu.undecidable", "an IFM of 64-bit elements");
  Shape3 stored = in.window_;
  if (in.upscale_ != Upscale::none) stored.h = (stored.h + 1) / 2, stored.w = (stored.w + 1) / 2;
  TOSAIC_TRY(in.map_, place_operand(context, in.operand_, stored, false, "IFM"));
  if (in.window_.w * depth > most_elements)
    return error("ethosu.too-large", fmt::format("an IFM row of {} elements", in.window_.w * depth));
  if (out.stores() && in.map_.overlaps(out.map())) {
    in.copy_ = std::make_shared<std::vector<std::byte>>();
    in.map_ = in.map_.snapshot(*in.copy_);
  }
  if (mutated("ifm.zero_point")) in.operand_.zero_point = 0;
  return in;
}

bool WindowInput::fits_int16() const {
  const ElementType type = operand_.layout.type;
  if (type.bytes == 1) return std::abs(operand_.zero_point) <= 255;
  return type.bytes == 2 && type.is_signed && operand_.zero_point == 0;
}

template <class T>
void WindowInput::spread(const T* stored_row, T* to, std::int64_t stride) const {
  for (std::int64_t x = 0; x < window_.w; ++x) {
    const std::int64_t from = stored(x);
    if (from < 0)
      std::fill_n(to + x * stride, window_.c, T{0});
    else
      std::copy_n(stored_row + from * window_.c, window_.c, to + x * stride);
  }
}

void WindowInput::read(Scratch& scratch, std::int64_t y, std::int64_t* to) const {
  const std::int64_t row = stored(y), width = map_.shape().w, depth = window_.c;
  if (row < 0) {
    std::fill_n(to, window_.w * depth, 0);
    return;
  }
  std::int64_t* target = upscale_ == Upscale::none ? to : Scratch::of(scratch.stored, width * depth);
  map_.read_row(row, 0, width, 0, depth, target);
  if (operand_.zero_point)
    for (std::int64_t i = 0; i < width * depth; ++i) target[i] -= operand_.zero_point;
  if (upscale_ != Upscale::none) spread(target, to, depth);
}

void WindowInput::read(Scratch& scratch, std::int64_t y, std::int16_t* to, std::int64_t stride) const {
  const std::int64_t row = stored(y), width = map_.shape().w, depth = window_.c;
  if (row < 0) {
    for (std::int64_t x = 0; x < window_.w; ++x) std::fill_n(to + x * stride, depth, std::int16_t{0});
    return;
  }
  if (upscale_ == Upscale::none)
    return map_.read_row(row, 0, width, 0, depth, static_cast<std::int32_t>(operand_.zero_point), to, stride);
  std::int16_t* held = Scratch::of(scratch.narrow_stored, width * depth);
  map_.read_row(row, 0, width, 0, depth, static_cast<std::int32_t>(operand_.zero_point), held, depth);
  spread(held, to, stride);
}

}  // namespace tosaic::ethosu
