// SPDX-License-Identifier: Apache-2.0
// What kernels that go over windows of pixels share: axes as parameters, and where output pixels stand.
#pragma once
#include <optional>

#include "shaders/kernels.h"

namespace tosaic::shaders {

// One spatial axis, as parameters of the shader.
struct Axis {
  Value size, kernel, before, stride, dilation, out;
};
// `fixed`: kernel and dilation are part of the shader, which then is no other layer's, and indexes faster.
Axis axis_of(Kernel& s, const tosa::View& view, std::size_t i, std::int64_t kernel, bool fixed = false);

// An output pixel: where it stands along each axis, and in which image.
struct Pixel {
  Value number, image;
  std::vector<Value> position;
};
Pixel pixel_at(Value number, const std::vector<Axis>& axes);

inline Value centred(Value element, const std::optional<Value>& zero_point) {
  return zero_point ? element - *zero_point : element;
}
// Of 8-bit tensors: others have none.
std::optional<Value> zero_point(Kernel& s, const tosa::View& view, std::size_t tensor, std::size_t operand);

Value bias_at(Kernel& s, const tosa::View& view, Value channel);
// The same of four channels.
Quad bias_quad_at(Kernel& s, const tosa::View& view, Value quad);

}  // namespace tosaic::shaders
