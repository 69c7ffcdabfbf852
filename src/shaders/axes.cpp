// SPDX-License-Identifier: Apache-2.0
#include "shaders/axes.h"

namespace tosaic::shaders {

Axis axis_of(Kernel& s, const tosa::View& view, std::size_t i, std::int64_t kernel, bool fixed) {
  const int dim = static_cast<int>(i) + 1;
  const auto at = [&](std::string_view list, std::size_t n) { return s.param(view.ints(list)[n]); };
  const Value size = s.param(view.in(0).shape[dim]), taps = fixed ? s.integer(kernel) : s.param(kernel),
              before = at("pad", 2 * i), stride = at("stride", i),
              dilation = fixed ? s.integer(view.ints("dilation")[i]) : at("dilation", i);
  return {size, taps, before, stride, dilation, s.param(view.out().shape[dim])};
}

Pixel pixel_at(Value number, const std::vector<Axis>& axes) {
  Pixel pixel{number, number, std::vector<Value>(axes.size())};
  for (std::size_t i = axes.size(); i-- > 0; pixel.image = pixel.image / axes[i].out)
    pixel.position[i] = pixel.image % axes[i].out;
  return pixel;
}

std::optional<Value> zero_point(Kernel& s, const tosa::View& view, std::size_t tensor, std::size_t operand) {
  const DType type = view.in(tensor).dtype;
  if (type != DType::i8 && type != DType::i4) return std::nullopt;
  return s.param((*view.constant_integers(operand))[0]);
}

Value bias_at(Kernel& s, const tosa::View& view, Value channel) {
  const ValueId bias = view.node().inputs[2];
  return s.load(s.input(bias), view.in(2).shape.elements() == 1 ? s.integer(0) : channel);
}

Quad bias_quad_at(Kernel& s, const tosa::View& view, Value quad) {
  const ValueId bias = view.node().inputs[2];
  const DType type = view.in(2).dtype;
  const bool whole = reads_texels(s.work().tier) ? has_quads(type) : storage_size(type) <= 4;
  if (view.in(2).shape.elements() != 1 && whole) return s.load_quad(s.input(bias, true), quad);
  Quad all;
  s.repeat(4, [&](int q) { all[static_cast<std::size_t>(q)] = bias_at(s, view, (quad << s.integer(2)) + q); });
  return all;
}

}  // namespace tosaic::shaders
