// SPDX-License-Identifier: Apache-2.0
#include "quantise/observe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tosaic {
namespace {
constexpr double smallest_scale = 1.0 / 65536;  // keeps constant-zero tensors representable
}

Range range_of_elements(const TensorView& tensor) {
  if (tensor.type.dtype == DType::f32) {
    // Independent lanes, so that it vectorises without reassociation; a comparison with NaN keeps the bound.
    constexpr std::size_t lanes = 32;
    float low[lanes] = {}, high[lanes] = {};
    auto x = tensor.as<float>();
    std::size_t i = 0;
    for (; i + lanes <= x.size(); i += lanes)
      for (std::size_t k = 0; k < lanes; ++k) {
        low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
        high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
      }
    Range range;
    for (; i < x.size(); ++i) range.include(x[i]);
    for (std::size_t k = 0; k < lanes; ++k) {
      range.include(low[k]);
      range.include(high[k]);
    }
    if (std::isfinite(range.lowest) && std::isfinite(range.highest)) return range;
  }
  Range range;  // with infinities about, element by element
  const auto n = static_cast<std::size_t>(tensor.type.shape.elements());
  for (std::size_t i = 0; i < n; ++i) {
    double v = element_as_double(tensor.type.dtype, tensor.data, i);
    if (std::isfinite(v)) range.include(v);
  }
  return range;
}

void Histogram::cover(const Range& range) {
  const Range before = range_;
  range_.include(range);
  if (counts_.empty()) counts_.assign(bins, 0);
  if (range_.lowest == before.lowest && range_.highest == before.highest) return;
  const double old_bin = (before.highest - before.lowest) / bins, bin = (range_.highest - range_.lowest) / bins;
  const auto old_counts = std::exchange(counts_, std::vector<std::uint64_t>(bins, 0));
  for (std::size_t b = 0; b < bins; ++b) {
    const double centre = before.lowest + (static_cast<double>(b) + 0.5) * old_bin;
    counts_[std::min<std::size_t>(static_cast<std::size_t>((centre - range_.lowest) / bin), bins - 1)] += old_counts[b];
  }
}

void Histogram::add(const TensorView& tensor, const Range& range) {
  cover(range);
  const double width = range_.highest - range_.lowest;
  if (!(width > 0)) return;
  const auto low = static_cast<float>(range_.lowest);
  const auto per_unit = static_cast<float>(bins / width);
  auto bin_of = [&](float v) {
    float at = (v - low) * per_unit;
    at = at > 0 ? at : 0;  // NaN too
    return static_cast<std::size_t>(static_cast<std::int32_t>(at < bins - 1 ? at : bins - 1));
  };
  if (tensor.type.dtype == DType::f32) {
    // Four tables in turn: equal neighbours (zeros after relu) would otherwise wait for each other.
    std::vector<std::uint32_t> tables(4 * bins, 0);
    auto x = tensor.as<float>();
    std::size_t i = 0;
    for (; i + 4 <= x.size(); i += 4) {
      ++tables[bin_of(x[i])];
      ++tables[bins + bin_of(x[i + 1])];
      ++tables[2 * bins + bin_of(x[i + 2])];
      ++tables[3 * bins + bin_of(x[i + 3])];
    }
    for (; i < x.size(); ++i) ++tables[bin_of(x[i])];
    for (std::size_t b = 0; b < bins; ++b)
      counts_[b] += std::uint64_t{tables[b]} + tables[bins + b] + tables[2 * bins + b] + tables[3 * bins + b];
  } else {
    const auto n = static_cast<std::size_t>(tensor.type.shape.elements());
    for (std::size_t i = 0; i < n; ++i)
      ++counts_[bin_of(static_cast<float>(element_as_double(tensor.type.dtype, tensor.data, i)))];
  }
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
      if (double e = error_of(f, to); e < best) {
        best = e;
        from = f;
      }
    for (int t = std::max(zero, from + 1); t <= bins; ++t)
      if (double e = error_of(from, t); e < best) {
        best = e;
        to = t;
      }
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
  const auto n = static_cast<std::size_t>(shape.elements());
  Bytes floats =
      weight.type.dtype == DType::f32 ? weight.data : converted({weight.type, weight.data.data()}, DType::f32);
  const float* w = floats.as<float>().data();
  // The weight as [outer, channels, inner].
  const std::size_t channels = axis < 0 ? 1 : static_cast<std::size_t>(shape[axis]);
  std::size_t inner = axis < 0 ? n : 1;
  for (int i = axis + 1; axis >= 0 && i < shape.rank(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  const std::size_t outer = n == 0 ? 0 : n / (channels * inner);
  auto each_channel = [&](auto&& f) {  // f(channel, first element, end)
    for (std::size_t o = 0; o < outer; ++o)
      for (std::size_t c = 0; c < channels; ++c) f(c, (o * channels + c) * inner, (o * channels + c + 1) * inner);
  };
  std::vector<float> largest(channels, 0);
  each_channel([&](std::size_t c, std::size_t first, std::size_t end) {
    float most = largest[c];
    for (std::size_t i = first; i < end; ++i) {
      const float v = std::fabs(w[i]);
      most = v > most && v <= std::numeric_limits<float>::max() ? v : most;
    }
    largest[c] = most;
  });
  Scales s{{}, {}};
  s.axis = axis;
  s.lowest = -127;
  s.highest = 127;
  for (std::size_t c = 0; c < channels; ++c) {
    s.scale.push_back(std::max(static_cast<double>(static_cast<float>(largest[c] / 127.0)), 1e-12));
    s.zero_point.push_back(0);
  }
  // Whole multiples of one unit (the weights of a centring, of a mean) stay exact.
  std::vector<float> least(largest);
  each_channel([&](std::size_t c, std::size_t first, std::size_t end) {
    float smallest = least[c];
    for (std::size_t i = first; i < end; ++i) {
      const float v = std::fabs(w[i]);
      smallest = v > 0 && v < smallest ? v : smallest;
    }
    least[c] = smallest;
  });
  std::vector<char> whole(channels, 1);
  each_channel([&](std::size_t c, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end && whole[c]; ++i) {
      const double multiple = w[i] / static_cast<double>(least[c]);
      whole[c] = std::fabs(multiple) < 127.5 && std::fabs(multiple - std::nearbyint(multiple)) < 1e-4;
    }
  });
  for (std::size_t c = 0; c < channels; ++c)
    if (whole[c] && least[c] > 0 && least[c] < largest[c])
      s.scale[c] = least[c] / std::floor(127.0 / std::nearbyint(static_cast<double>(largest[c]) / least[c]));
  std::vector<std::int8_t> codes(n);
  each_channel([&](std::size_t c, std::size_t first, std::size_t end) {
    const double per_unit = 1 / s.scale[c];
    constexpr double to_even = 0x1.8p52;  // added and taken away, it rounds as nearbyint does, but in vectors
    for (std::size_t i = first; i < end; ++i) {
      double code = w[i] * per_unit;
      code = code == code ? code : 0;
      code = std::clamp(code, -127.0, 127.0);
      codes[i] = static_cast<std::int8_t>(static_cast<std::int32_t>((code + to_even) - to_even));
    }
  });
  return {{DType::i8, shape, s}, Bytes::of(std::move(codes))};
}

}  // namespace tosaic
