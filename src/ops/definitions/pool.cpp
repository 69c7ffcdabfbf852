// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/pool.h"

#include <algorithm>
#include <array>

#include "ir/sized_attribute.h"
#include "ops/definitions/extension.h"

namespace tosaic::tosa {

namespace {
// Of the adaptive pools: where kernel, stride and pad are among `inputs` operands.
constexpr std::array<std::string_view, 3> window_names{"kernel", "stride", "pad"};
bool is_adaptive(const View& view) {
  return view.node().op == op::avg_pool2d_adaptive || view.node().op == op::max_pool2d_adaptive;
}
std::size_t window_operand(const View& view, std::size_t which) { return view.inputs() - window_names.size() + which; }

// Both axes, without the sizes of what is slid over. `numbers` gives those of window_names.
template <class Numbers>
std::vector<Slide> slides_of(Numbers&& numbers) {
  const std::vector<std::int64_t> kernel = numbers(0), stride = numbers(1), pad = numbers(2);
  const auto at = [](const std::vector<std::int64_t>& list, std::size_t i, std::int64_t otherwise) {
    return i < list.size() ? list[i] : otherwise;
  };
  std::vector<Slide> slides;
  for (std::size_t i = 0; i < 2; ++i)
    slides.push_back({.kernel = at(kernel, i, 1),
                      .before = at(pad, 2 * i, 0),
                      .after = at(pad, 2 * i + 1, 0),
                      .stride = at(stride, i, 1)});
  return slides;
}

std::vector<Slide> slides_without_sizes(const View& view) {
  return slides_of([&](std::size_t which) -> std::vector<std::int64_t> {
    if (is_adaptive(view))
      return view.constant_integers(window_operand(view, which)).value_or(std::vector<std::int64_t>());
    const Attr* attr = view.node().attrs.find(window_names[which]);
    const auto* list = attr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
    return list ? *list : std::vector<std::int64_t>();
  });
}

std::vector<Slide> with_sizes(std::vector<Slide> slides, const Shape& input) {
  for (std::size_t i = 0; i < 2; ++i) slides[i].size = input.size(1 + static_cast<int>(i));
  return slides;
}

Dim sized(const View& view, std::string_view attribute, std::size_t i, std::int64_t otherwise) {
  return sized_attribute(view.node().attrs, attribute, i).value_or(otherwise);
}
}  // namespace

std::vector<Slide> pool_slides(const View& view) { return with_sizes(slides_without_sizes(view), view.in(0).shape); }

std::vector<Slide> pool_slides(const Run& run) {
  if (!is_adaptive(run.view)) return pool_slides(run.view);
  const auto numbers = [&](std::size_t which) { return integers_of(run.in[window_operand(run.view, which)]); };
  return with_sizes(slides_of(numbers), run.in[0].type.shape);
}

bool adapts(const View& view) {
  if (!is_adaptive(view)) return false;
  for (std::size_t which = 0; which < window_names.size(); ++which)
    if (view.constant(window_operand(view, which)).null()) return false;
  return true;
}

std::vector<TensorType> infer_pool(const View& view) {
  if (is_adaptive(view) && !adapts(view)) return {};
  const std::vector<Slide> slides = slides_without_sizes(view);
  const Shape& in = view.in(0).shape;
  std::vector<Dim> dims{in[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const Slide& slide = slides[i];
    const Dim &size = in[1 + static_cast<int>(i)], kernel = sized(view, "kernel", i, slide.kernel),
              stride = sized(view, "stride", i, slide.stride);
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
  for (std::size_t which = 0; which < window_names.size(); ++which) {
    const std::size_t length = window_names[which] == "pad" ? 4 : 2;
    if (Check c = is_adaptive(view) ? check_length(view, window_operand(view, which), static_cast<std::int64_t>(length))
                                    : check_length(view, window_names[which], length))
      return c;
  }
  if (is_adaptive(view) && !adapts(view)) return std::nullopt;
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

Op adaptive_pool(Op pool, std::string_view name, std::uint16_t schema_number,
                 std::vector<ValueId> (*in_1_0)(extension::Definition&)) {
  pool.name = name;
  pool.schema_number = schema_number;
  pool.spirv_number = 0xffff;
  pool.newer = true;
  pool.in_1_0 = in_1_0;
  for (const std::string_view window : window_names) {
    std::erase_if(pool.attrs, [&](const AttrDef& def) { return def.name == window; });
    pool.inputs.push_back({.name = window, .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true});
  }
  return pool;
}

std::vector<ValueId> as_pool(extension::Definition& d, Operator op) {
  std::vector<ValueId> operands = d.node().inputs;
  Attrs attrs;
  for (std::size_t which = 0; which < window_names.size(); ++which)
    attrs.set(std::string(window_names[which]), d.integers(operands[operands.size() - window_names.size() + which]));
  for (const auto& [name, attr] : d.node().attrs) attrs.set(name, attr);
  operands.resize(operands.size() - window_names.size());
  return {d.call(op, std::move(operands), d.result(), std::move(attrs))};
}

}  // namespace tosaic::tosa
