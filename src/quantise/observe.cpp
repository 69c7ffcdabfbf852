// SPDX-License-Identifier: Apache-2.0
#include "quantise/observe.h"

#include <algorithm>
#include <cmath>

namespace tosaic {
namespace {
constexpr double smallest_scale = 1.0 / 65536;  // keeps constant-zero tensors representable
}

Range range_of_elements(const TensorView& tensor) {
  Range range;
  if (tensor.type.dtype == DType::f32) {
    auto x = tensor.as<float>();
    float low = 0, high = 0;
    bool strange = false;
    for (float v : x) {  // branch-free, so that it vectorises; NaN and infinity take the slow way below
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
    strange = std::isinf(low) || std::isinf(high);
    if (!strange) return {low, high};
  }
  const auto n = static_cast<std::size_t>(tensor.type.shape.elements());
  for (std::size_t i = 0; i < n; ++i) {
    double v = element_as_double(tensor.type.dtype, tensor.data, i);
    if (std::isfinite(v)) range.include(v);
  }
  return range;
}

void Histogram::add(const TensorView& tensor) {
  const double width = range_.highest - range_.lowest;
  if (!(width > 0)) return;
  const auto low = static_cast<float>(range_.lowest);
  const auto per_unit = static_cast<float>(bins / width);
  auto place = [&](float v) {
    float at = (v - low) * per_unit;
    if (!(at >= 0)) at = 0;  // NaN too
    counts_[static_cast<std::size_t>(std::min(at, static_cast<float>(bins - 1)))]++;
  };
  if (tensor.type.dtype == DType::f32) {
    for (float v : tensor.as<float>()) place(v);
  } else {
    const auto n = static_cast<std::size_t>(tensor.type.shape.elements());
    for (std::size_t i = 0; i < n; ++i) place(static_cast<float>(element_as_double(tensor.type.dtype, tensor.data, i)));
  }
}

void Histogram::add(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size() && i < other.counts_.size(); ++i) counts_[i] += other.counts_[i];
}

Range Histogram::best_range(int levels) const {
  const double width = range_.highest - range_.lowest;
  if (!(width > 0)) return range_;
  const double bin = width / bins;
  // Prefix sums of count, count*x and count*x^2 give the cost of clipping either end in constant time.
  std::vector<double> n(bins + 1, 0), first(bins + 1, 0), second(bins + 1, 0);
  for (int i = 0; i < bins; ++i) {
    auto k = static_cast<std::size_t>(i);
    const double x = range_.lowest + (i + 0.5) * bin, c = static_cast<double>(counts_[k]);
    n[k + 1] = n[k] + c;
    first[k + 1] = first[k] + c * x;
    second[k + 1] = second[k] + c * x * x;
  }
  auto clip_cost = [&](int from, int to, double bound) {  // elements of bins [from, to) moved to `bound`
    auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
    return second[t] - second[f] - 2 * bound * (first[t] - first[f]) + bound * bound * (n[t] - n[f]);
  };
  auto error_of = [&](int from, int to) {
    const double low = range_.lowest + from * bin, high = range_.lowest + to * bin, step = (high - low) / levels;
    return clip_cost(0, from, low) + clip_cost(to, bins, high) +
           (n[static_cast<std::size_t>(to)] - n[static_cast<std::size_t>(from)]) * step * step / 12;
  };
  // Zero stays inside, so the two ends move independently: coordinate descent on a convex-enough error.
  const int zero = std::clamp(static_cast<int>((0 - range_.lowest) / bin), 0, bins);
  int from = 0, to = bins;
  double best = error_of(from, to);
  for (int round = 0; round < 4; ++round) {
    const double before = best;
    for (int f = 0; f <= std::min(zero, to - 1); ++f)
      if (double e = error_of(f, to); e < best) { best = e; from = f; }
    for (int t = std::max(zero, from + 1); t <= bins; ++t)
      if (double e = error_of(from, t); e < best) { best = e; to = t; }
    if (best >= before) break;
  }
  return {range_.lowest + from * bin, range_.lowest + to * bin};
}

Scales affine_scales(const Range& range, DType dtype) {
  const auto codes = range_of(dtype);
  const double steps = static_cast<double>(codes.highest - codes.lowest);
  Scales s;
  s.scale = {std::max(static_cast<double>(static_cast<float>((range.highest - range.lowest) / steps)), smallest_scale)};
  const double zero = static_cast<double>(codes.lowest) - range.lowest / s.scale[0];
  s.zero_point = {static_cast<std::int64_t>(
      std::clamp(std::nearbyint(zero), static_cast<double>(codes.lowest), static_cast<double>(codes.highest)))};
  return s;
}

Scales symmetric_scales(double largest, DType dtype) {
  const double highest = static_cast<double>(range_of(dtype).highest);
  return Scales{{std::max(static_cast<double>(static_cast<float>(largest / highest)), smallest_scale / highest)}, {0}};
}

Tensor quantised_weight(const Tensor& weight, int axis) {
  const Shape& shape = weight.type.shape;
  const std::int64_t channels = axis < 0 ? 1 : shape[axis];
  std::int64_t inner = 1;
  for (int i = axis + 1; axis >= 0 && i < shape.rank(); ++i) inner *= shape[i];
  if (axis < 0) inner = std::max<std::int64_t>(shape.elements(), 1);
  const auto n = static_cast<std::size_t>(shape.elements());
  auto channel_of = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<std::int64_t>(i) / inner % channels); };
  std::vector<double> largest(static_cast<std::size_t>(channels), 0);
  auto element = [&](std::size_t i) {
    return weight.type.dtype == DType::f32 ? static_cast<double>(weight.data.as<float>()[i])
                                           : element_as_double(weight.type.dtype, weight.data.data(), i);
  };
  for (std::size_t i = 0; i < n; ++i)
    if (double v = std::fabs(element(i)); std::isfinite(v)) largest[channel_of(i)] = std::max(largest[channel_of(i)], v);
  Scales s{{}, {}};
  std::vector<double> per_unit;
  for (double l : largest) {
    s.scale.push_back(std::max(static_cast<double>(static_cast<float>(l / 127)), 1e-12));
    s.zero_point.push_back(0);
    per_unit.push_back(1 / s.scale.back());
  }
  s.axis = axis;
  s.lowest = -127;
  s.highest = 127;
  std::vector<std::int8_t> codes(n);
  for (std::size_t i = 0; i < n; ++i) {
    double code = std::nearbyint(element(i) * per_unit[channel_of(i)]);
    codes[i] = static_cast<std::int8_t>(std::isnan(code) ? 0.0 : std::clamp(code, -127.0, 127.0));
  }
  return {{DType::i8, shape, s}, Bytes::of(std::move(codes))};
}

}  // namespace tosaic
