// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/window.h"

namespace tosaic::tosa {
namespace {

// Operands {input, scale, offset, border}. Along each axis output position o lies at (o * d + offset) / n of the
// input, where scale is n / d.
struct Axis {
  std::int64_t size;  // 0: a Dim
  std::int64_t n, d, offset, border;
  std::int64_t reach() const { return (size - 1) * n - offset + border; }
  std::int64_t out() const {
    // Dims from 2^14 on are refused by `check`; here they must only not overflow.
    if (d < 1 || size > INT32_MAX || n > INT32_MAX || n < 1 || reach() < 0) return 0;
    return reach() / d + 1;
  }
  Dim out_of(const Dim& in) const {
    if (in.is_number() || d < 1) return out();
    return floor_div((in - 1) * Dim(n) + Dim(border - offset), d) + 1;
  }
};

// Nothing when the operands are known only at run time.
std::optional<std::vector<Axis>> axes_of(const View& view) {
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2), border = view.constant_integers(3);
  if (!scale || !offset || !border || scale->size() != 4 || offset->size() != 2 || border->size() != 2)
    return std::nullopt;
  const auto size = [&](int dim) { return view.in(0).shape[dim].is_number() ? view.in(0).shape.size(dim) : 0; };
  return std::vector<Axis>{{size(1), (*scale)[0], (*scale)[1], (*offset)[0], (*border)[0]},
                           {size(2), (*scale)[2], (*scale)[3], (*offset)[1], (*border)[1]}};
}

bool is_bilinear(const View& view) { return view.text("mode") == "bilinear"; }

std::vector<TensorType> infer(const View& view) {
  const auto axes = axes_of(view);
  if (!axes) return {};
  const Shape& in = view.in(0).shape;
  Shape shape(std::vector<Dim>{in[0], (*axes)[0].out_of(in[1]), (*axes)[1].out_of(in[2]), in[3]});
  DType type = view.in(0).dtype;
  if (is_bilinear(view)) type = type == DType::i8 ? DType::i32 : type == DType::i16 ? DType::i48 : type;
  return {{type, std::move(shape), std::nullopt}};
}

Check check_axis(const Axis& a, std::int64_t declared, std::string_view axis) {
  if (a.size >= 16384 || declared >= 16384)
    return broken("resize.size", "{} sizes {} and {} must be below 16384", axis, a.size, declared);
  if (a.n <= 0 || a.d <= 0) return broken("resize.scale-positive", "{} scale {}/{} must be positive", axis, a.n, a.d);
  if (a.n > 1 << 11) return broken("resize.scale-limit", "{} scale numerator {} exceeds 2048", axis, a.n);
  if (a.d >= 16 * a.n) return broken("resize.downscale", "{} scale {}/{} must be above 1/16", axis, a.n, a.d);
  if (a.offset < -a.n || a.offset >= 16 * a.n)
    return broken("resize.offset", "{} offset {} is outside {}..{}", axis, a.offset, -a.n, 16 * a.n - 1);
  if (a.border < -16 * a.n || a.border >= a.n)
    return broken("resize.border", "{} border {} is outside {}..{}", axis, a.border, -16 * a.n, a.n - 1);
  if (a.reach() < 0 || a.reach() % a.d != 0)
    return broken("resize.output-size", "{}: ({} - 1) * {} - {} + {} is {}, which {} must divide", axis, a.size, a.n,
                  a.offset, a.border, a.reach(), a.d);
  return std::nullopt;
}

Check check(const View& view) {
  for (auto [i, length] : {std::pair<std::size_t, std::int64_t>{1, 4}, {2, 2}, {3, 2}})
    if (view.in(i).shape.size(0) != length)
      return broken("resize.operand-length", "operand {} has {} numbers, {} are needed", i, view.in(i).shape.size(0),
                    length);
  const auto axes = axes_of(view);
  // A node that is being built has no result yet, or one of a dtype alone.
  const bool declared = !view.node().outputs.empty();
  if (const DType in = view.in(0).dtype; declared && is_integer(in) && (in == view.out().dtype) == is_bilinear(view))
    return broken("resize.mode-type", "mode {} cannot make {} of {}", view.text("mode"), name_of(view.out().dtype),
                  name_of(in));
  if (!axes) return std::nullopt;
  const auto size = [&](int i) {
    return declared && view.out().rank() == 4 ? view.out().shape.size(i)
                                              : (*axes)[static_cast<std::size_t>(i - 1)].out();
  };
  if (Check c = check_axis((*axes)[0], size(1), "y")) return c;
  return check_axis((*axes)[1], size(2), "x");
}

Check level(const View& view, const Level& limits) {
  const auto axes = axes_of(view);
  if (!axes) return std::nullopt;
  for (const Axis& a : *axes)
    if (a.n > limits.max_scale * a.d)
      return broken("resize.level-scale", "scale {}/{} exceeds the level's {}", a.n, a.d, limits.max_scale);
  return std::nullopt;
}

// The two neighbours of an output position, and how far it lies after the first, in units of 1/n.
struct Sample {
  std::int64_t first, second, distance;
};
Sample sample(const Axis& a, std::int64_t o) {
  const std::int64_t at = o * a.d + a.offset;
  std::int64_t whole = at / a.n;
  if (whole * a.n > at) --whole;  // towards minus infinity
  return {std::clamp<std::int64_t>(whole, 0, a.size - 1), std::clamp<std::int64_t>(whole + 1, 0, a.size - 1),
          at - whole * a.n};
}

Status eval(const Run& run) {
  const auto scale = integers_of(run.in[1]), offset = integers_of(run.in[2]), border = integers_of(run.in[3]);
  const Shape &in = run.in[0].type.shape, &out = run.out[0].type.shape;
  const Axis vertical{in.size(1), scale[0], scale[1], offset[0], border[0]},
      horizontal{in.size(2), scale[2], scale[3], offset[1], border[1]};
  const std::vector<double> values = as_doubles(run.in[0]);
  const std::int64_t channels = in.size(3);
  // Integers keep the weights as they are, 0..n; floats divide them to 0..1.
  const bool floating = is_float(run.in[0].type.dtype);
  const double unit_y = floating ? 1.0 : static_cast<double>(vertical.n),
               unit_x = floating ? 1.0 : static_cast<double>(horizontal.n);
  const bool bilinear = is_bilinear(run.view);
  std::vector<double> row(static_cast<std::size_t>(channels));
  std::int64_t written = 0;
  for (std::int64_t n = 0; n < out.size(0); ++n)
    for (std::int64_t oy = 0; oy < out.size(1); ++oy) {
      const Sample y = sample(vertical, oy);
      for (std::int64_t ox = 0; ox < out.size(2); ++ox) {
        const Sample x = sample(horizontal, ox);
        auto at = [&](std::int64_t iy, std::int64_t ix) {
          return values.data() + ((n * in.size(1) + iy) * in.size(2) + ix) * channels;
        };
        if (bilinear) {
          const double dy = static_cast<double>(y.distance) * unit_y / static_cast<double>(vertical.n);
          const double dx = static_cast<double>(x.distance) * unit_x / static_cast<double>(horizontal.n);
          const double *v00 = at(y.first, x.first), *v01 = at(y.first, x.second);
          const double *v10 = at(y.second, x.first), *v11 = at(y.second, x.second);
          for (std::size_t c = 0; c < row.size(); ++c)
            row[c] = v00[c] * (unit_y - dy) * (unit_x - dx) + v01[c] * (unit_y - dy) * dx +
                     v10[c] * dy * (unit_x - dx) + v11[c] * dy * dx;
        } else {
          const double* v = at(2 * y.distance >= vertical.n ? y.second : y.first,
                               2 * x.distance >= horizontal.n ? x.second : x.first);
          std::copy(v, v + channels, row.begin());
        }
        store_doubles(run.out[0], written, row);
        written += channels;
      }
    }
  return {};
}

// Of the four pixels around a point; integers weigh them by numbers that add up to the product of the two scales.
Bounds between_pixels(const View& view, const BoundsOf& in) {
  const Bounds x = in(0);
  if (!is_bilinear(view) || is_float(view.in(0).dtype)) return x;
  const auto axes = axes_of(view);
  if (!axes) return {};
  const auto weight = static_cast<double>((*axes)[0].n * (*axes)[1].n);
  return {x.lowest * weight, x.highest * weight};
}

TypeRow row(Feature needs, DType in, DType out) { return {{needs}, {{"in", in}, {"out", out}}}; }

}  // namespace

Op tosa_resize() {
  using enum DType;
  return {
      .name = "resize",
      .schema_number = 64,
      .spirv_number = 63,
      .summary = "scales the image axes of an NHWC tensor by nearest or bilinear sampling",
      .inputs = {{"input", "in", 4, 4},
                 {.name = "scale", .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "offset", .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "border", .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {{"mode", AttrKind::resize_mode}},
      .outputs = {{"output", "out", 4, 4}},
      .types = {row(Feature::pro_int, i8, i32), row(Feature::pro_int, i8, i8), row(Feature::int16, i16, i48),
                row(Feature::int16, i16, i16), row(Feature::pro_fp, f16, f16), row(Feature::pro_fp, f32, f32),
                row(Feature::bf16, bf16, bf16)},
      .infer = infer,
      .check = check,
      .level = level,
      .eval = eval,
      .bounds = between_pixels,
  };
}
}  // namespace tosaic::tosa
