// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/resample.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/lowering/layout.h"

namespace tosaic {
namespace {
using Ints = std::vector<std::int64_t>;

// The input index of each output of a nearest resampling, with PyTorch's single-precision arithmetic.
Ints nearest_indices(const Resampled& d, Sampling sampling) {
  const auto step = static_cast<float>(d.step);
  const float centre = sampling == Sampling::nearest_exact ? 0.5f : 0.0f;
  Ints indices;
  for (std::int64_t i = 0; i < d.out; ++i) {
    const float at = (static_cast<float>(i) + centre) * step;
    indices.push_back(std::min(static_cast<std::int64_t>(std::floor(at)), d.in - 1));
  }
  return indices;
}

// RESIZE's numbers for one dim (spec RESIZE): output o looks at (o * d + offset) / n.
struct Axis {
  std::int64_t n, d, offset, border;
  bool valid(std::int64_t in, std::int64_t out) const {
    return n > 0 && d > 0 && n <= 2048 && d < 16 * n && offset >= -n && offset < 16 * n && border >= -16 * n &&
           border < n && std::max(in, out) < 16384;
  }
};
Axis completed(std::int64_t n, std::int64_t d, std::int64_t offset, std::int64_t in, std::int64_t out) {
  const std::int64_t g = std::gcd(std::gcd(n, d), offset);
  n /= g, d /= g, offset /= g;
  return {n, d, offset, (out - 1) * d - (in - 1) * n + offset};
}

// step as a fraction d/n of small numbers, the nearest within float's precision.
struct Fraction {
  std::int64_t d, n;
};
std::optional<Fraction> fraction(const Resampled& dim) {
  if (dim.step == static_cast<double>(dim.in) / static_cast<double>(dim.out)) {
    const std::int64_t g = std::gcd(dim.in, dim.out);
    return Fraction{dim.in / g, dim.out / g};
  }
  for (std::int64_t n = 1; n <= 1024; ++n) {
    const double d = std::nearbyint(dim.step * static_cast<double>(n));
    if (d > 0 && std::fabs(d / static_cast<double>(n) - dim.step) < 1e-7 * dim.step)
      return Fraction{static_cast<std::int64_t>(d), n};
  }
  return std::nullopt;
}

// Nearest: RESIZE rounds (o * d + offset) / n half up. With the step d/n doubled to 2d/2n, offset -n turns that
// into floor(o * d / n), and offset d - n into floor((o + 1/2) * d / n). Enlarging n times, where both are the same,
// is spelled with offset 1 - n: no position lies half way, and it is the one form that Ethos-U55 and U65 take.
std::optional<Axis> nearest_axis(const Resampled& dim, Sampling sampling) {
  auto f = fraction(dim);
  if (!f) return std::nullopt;
  const bool centred = sampling == Sampling::nearest_exact || f->d == 1;
  Axis axis = completed(2 * f->n, 2 * f->d, centred ? f->d - f->n : -f->n, dim.in, dim.out);
  if (!axis.valid(dim.in, dim.out)) return std::nullopt;
  const Ints wanted = nearest_indices(dim, sampling);
  for (std::int64_t o = 0; o < dim.out; ++o) {
    const std::int64_t at = o * axis.d + axis.offset;
    const std::int64_t low = at >= 0 ? at / axis.n : -((-at + axis.n - 1) / axis.n), rest = at - low * axis.n;
    const std::int64_t index = 2 * rest >= axis.n ? std::min(low + 1, dim.in - 1) : std::max<std::int64_t>(low, 0);
    if (index != wanted[static_cast<std::size_t>(o)]) return std::nullopt;  // single precision rounds elsewhere
  }
  return axis;
}

// Bilinear: corners aligned, o * (in-1) / (out-1); otherwise (o + 1/2) * step - 1/2, clamped at both ends as RESIZE
// does.
std::optional<Axis> bilinear_axis(const Resampled& dim, bool align_corners) {
  Axis axis{};
  if (align_corners) {
    axis = completed(dim.out - 1, dim.in - 1, 0, dim.in, dim.out);
  } else {
    auto f = fraction(dim);
    if (!f) return std::nullopt;
    axis = completed(2 * f->n, 2 * f->d, f->d - f->n, dim.in, dim.out);
  }
  return axis.valid(dim.in, dim.out) ? std::optional(axis) : std::nullopt;
}

// x: N,H,W,C. Chooses rows (axis 1) or columns (axis 2) by constant indices.
Val chosen(Builder& b, Val x, int axis, const Ints& indices) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  const auto count = static_cast<std::int64_t>(indices.size());
  Ints all;
  for (std::int64_t n = 0; n < outer; ++n) all.insert(all.end(), indices.begin(), indices.end());
  auto dims = x.shape().sizes();
  Val values = b.reshape(x, {outer, x.dim(axis), inner});
  dims[static_cast<std::size_t>(axis)] = count;
  return b.reshape(b.gather(values, b.integers(all, DType::i32, {outer, count})), Shape(dims));
}

// Linear interpolation of one dim in plain arithmetic, for steps that RESIZE cannot express (floats only).
Val interpolated(Builder& b, const std::string& op, Val x, int axis, const Resampled& dim, bool align_corners) {
  if (x.type().quantised())
    b.refuse("aten." + op + ".scale",
             fmt::format("resizing {} to {} with step {} is outside what RESIZE takes (up to 2048 positions between "
                         "two pixels, at most 16 pixels between two positions)",
                         dim.in, dim.out, dim.step));
  Ints low, high;
  std::vector<double> weight;
  for (std::int64_t o = 0; o < dim.out; ++o) {
    double at =
        align_corners
            ? (dim.out > 1 ? static_cast<double>(o) * static_cast<double>(dim.in - 1) / static_cast<double>(dim.out - 1)
                           : 0.0)
            : (static_cast<double>(o) + 0.5) * dim.step - 0.5;
    at = std::clamp(at, 0.0, static_cast<double>(dim.in - 1));
    low.push_back(static_cast<std::int64_t>(at));
    high.push_back(std::min(low.back() + 1, dim.in - 1));
    weight.push_back(at - static_cast<double>(low.back()));
  }
  Ints shape(4, 1);
  shape[static_cast<std::size_t>(axis)] = dim.out;
  Val w = b.constant({x.dtype(), Shape(shape), {}}, constant_bytes(x.dtype(), weight));
  Val a = chosen(b, x, axis, low), c = chosen(b, x, axis, high);
  return b.add(a, b.mul(b.sub(c, a), w));
}

// Both dims by one RESIZE, or one after the other where it cannot say them.
Val moved(Builder& b, const std::string& op, Val y, const Resampled (&dims)[2], const std::optional<Axis> (&axes)[2],
          Sampling sampling, bool align_corners) {
  const bool linear = sampling == Sampling::bilinear;
  if (axes[0] && axes[1])
    return b.resize(y, {axes[0]->n, axes[0]->d, axes[1]->n, axes[1]->d}, {axes[0]->offset, axes[1]->offset},
                    {axes[0]->border, axes[1]->border}, linear ? "bilinear" : "nearest");
  for (int i = 0; i < 2; ++i) {
    const Resampled& d = dims[i];
    if (d.in == d.out && (align_corners || d.step == 1.0)) continue;
    y = linear ? interpolated(b, op, y, 1 + i, d, align_corners) : chosen(b, y, 1 + i, nearest_indices(d, sampling));
  }
  return y;
}

}  // namespace

std::vector<Resampled> resampled_dims(Builder& b, const Call& call, Val x, int spatial) {
  std::vector<Resampled> dims;
  const auto& name = call.schema().name;
  if (x.rank() != spatial + 2) b.refuse("aten." + name + ".rank", "an input of shape " + to_string(x.shape()));
  const auto sizes = call.has("output_size") ? call.spread("output_size", spatial) : Ints{};
  std::vector<double> factors;
  if (call.schema().argument("scale_factors") && call.has("scale_factors")) factors = call.numbers("scale_factors");
  if ((sizes.empty() && factors.empty()) || (!factors.empty() && static_cast<int>(factors.size()) != spatial))
    b.refuse("aten." + name + ".size", fmt::format("neither output_size nor {} scale_factors are given", spatial));
  const char* const scale_names[2][2] = {{"scales", "scales"}, {"scales_h", "scales_w"}};
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t in = x.dim(2 + i);
    const std::int64_t out =
        !sizes.empty() ? sizes[k] : static_cast<std::int64_t>(std::floor(static_cast<double>(in) * factors[k]));
    if (out < 1) b.refuse("aten." + name + ".size", fmt::format("output size {}", out));
    double step = static_cast<double>(in) / static_cast<double>(out);
    const char* given = scale_names[spatial - 1][k];
    double factor = 0;
    if (!factors.empty())
      factor = factors[k];
    else if (call.schema().argument(given) && call.has(given))
      factor = call.number(given);
    if (factor > 0) step = 1.0 / factor;
    dims.push_back({in, out, step});
  }
  return dims;
}

Val resample(Builder& b, const std::string& op, Val x, const std::vector<Resampled>& dims, Sampling sampling,
             bool align_corners) {
  Resampled left[2];
  Ints wide = x.shape().sizes();
  const bool linear = sampling == Sampling::bilinear;
  for (std::size_t i = 0; i < 2; ++i) {
    left[i] = dims[i];
    wide[2 + i] = left[i].out;
    const bool corner = linear && align_corners && left[i].out == 1 && left[i].in > 1;  // the first one, of both
    if (corner) x = b.slice_axis(x, 2 + static_cast<int>(i), 0, 1);
    // One pixel is that pixel everywhere, whatever the filter and the step: a broadcast, which needs no positions.
    if (corner || left[i].in == 1) left[i] = {1, 1, 1.0};
  }
  const auto stays = [&](const Resampled& d) { return d.in == d.out && (align_corners || d.step == 1.0); };
  if (!stays(left[0]) || !stays(left[1])) {
    std::optional<Axis> axes[2];
    for (std::size_t i = 0; i < 2; ++i)
      axes[i] = stays(left[i]) ? Axis{1, 1, 0, 0}
                : linear       ? bilinear_axis(left[i], align_corners)
                               : nearest_axis(left[i], sampling);
    x = moved(b, op, channels_last(x), left, axes, sampling, align_corners);
    x = channels_first(x);
  }
  return b.broadcast_to(x, Shape(wide));
}

Vals lower_upsample(Builder& b, const Call& call, int spatial, Sampling sampling) {
  Val x = call.tensor(call.schema().argument("input") ? "input" : "self");
  auto dims = resampled_dims(b, call, x, spatial);
  const bool align_corners = call.schema().argument("align_corners") && call.flag("align_corners");
  if (spatial == 1) {
    dims.insert(dims.begin(), {1, 1, 1.0});
    return b.squeeze(resample(b, call.schema().name, b.unsqueeze(x, 2), dims, sampling, align_corners), {2});
  }
  return resample(b, call.schema().name, x, dims, sampling, align_corners);
}

}  // namespace tosaic
