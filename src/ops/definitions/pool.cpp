// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/pool.h"

#include <algorithm>

#include "ir/sized_attribute.h"

namespace tosaic::tosa {

namespace {
// Without the size of what is slid over.
Slide slide_along(const View& view, std::size_t i) {
  return {.kernel = item(view, "kernel", i, 1),
          .before = item(view, "pad", 2 * i, 0),
          .after = item(view, "pad", 2 * i + 1, 0),
          .stride = item(view, "stride", i, 1)};
}

Dim sized(const View& view, std::string_view attribute, std::size_t i) {
  return sized_attribute(view.node().attrs, attribute, i).value_or(item(view, attribute, i, 1));
}
}  // namespace

std::vector<Slide> pool_slides(const View& view) {
  std::vector<Slide> slides;
  for (std::size_t i = 0; i < 2; ++i) {
    slides.push_back(slide_along(view, i));
    slides.back().size = view.in(0).shape.size(1 + static_cast<int>(i));
  }
  return slides;
}

std::vector<TensorType> infer_pool(const View& view) {
  const Shape& in = view.in(0).shape;
  std::vector<Dim> dims{in[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim &size = in[1 + static_cast<int>(i)], kernel = sized(view, "kernel", i), stride = sized(view, "stride", i);
    Slide slide = slide_along(view, i);
    if (kernel.is_number() && stride.is_number())
      dims.push_back(positions(size, slide));
    else
      dims.push_back(floor_div(size + Dim(slide.before + slide.after) - kernel, stride) + 1);
  }
  dims.push_back(in[3]);
  return {{view.in(0).dtype, Shape(std::move(dims)), std::nullopt}};
}

Check check_pool(const View& view) {
  const std::string_view op = view.node().op.base();
  for (auto [name, length] : {std::pair<std::string_view, std::size_t>{"kernel", 2}, {"stride", 2}, {"pad", 4}})
    if (Check c = check_length(view, name, length)) return c;
  const auto slides = pool_slides(view);
  for (const Slide& s : slides)
    if (s.kernel < 1) return broken(fmt::format("{}.kernel", op), "kernel {} must be at least 1", s.kernel);
  for (const Slide& s : slides)
    if (s.before >= s.kernel || s.after >= s.kernel)  // such a window could lie in padding only
      return broken(fmt::format("{}.pad-kernel", op), "padding {} must be less than the kernel, {}",
                    std::max(s.before, s.after), s.kernel);
  return check_slides(view, slides);
}

Check level_pool(const View& view, const Level& level) { return level_slides(view, level, pool_slides(view)); }

}  // namespace tosaic::tosa
