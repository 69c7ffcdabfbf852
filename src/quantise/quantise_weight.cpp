// SPDX-License-Identifier: Apache-2.0
// Every pass goes over one channel while it lies in the cache, and the channels over all cores: a network's weights
// are most of what its quantisation reads.
#include "quantise/quantise_weight.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "quantise/as_f32.h"
#include "quantise/observe.h"
#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// The weight as [outer, channels, inner]: one channel is `outer` runs of `inner` elements.
struct Layout {
  std::size_t outer, channels, inner;
  template <class F>
  void each_run(std::size_t channel, const F& f) const {  // f(first element)
    for (std::size_t o = 0; o < outer; ++o) f((o * channels + channel) * inner);
  }
};

Layout layout_of(const Shape& shape, int axis) {
  const auto n = static_cast<std::size_t>(shape.elements());
  Layout layout{1, 1, n};
  if (axis < 0) return layout;
  layout.channels = static_cast<std::size_t>(shape.size(axis));
  layout.inner = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) layout.inner *= static_cast<std::size_t>(shape.size(i));
  layout.outer = n == 0 ? 0 : n / (layout.channels * layout.inner);
  return layout;
}

bool whole_multiples(const float* x, std::size_t n, double unit) {
  for (std::size_t i = 0; i < n; ++i) {
    const double multiple = x[i] / unit;
    if (!(std::fabs(multiple) < 127.5 && std::fabs(multiple - std::nearbyint(multiple)) < 1e-4)) return false;
  }
  return true;
}

double scale_of(const float* x, const Layout& layout, std::size_t channel) {
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  layout.each_run(channel, [&](std::size_t first) {
    const simd::Magnitudes seen = simd::bulk_loops().magnitudes(x + first, layout.inner);
    smallest = std::min<double>(smallest, seen.smallest);
    largest = std::max<double>(largest, seen.largest);
  });
  if (smallest < largest) {
    bool whole = true;
    layout.each_run(channel,
                    [&](std::size_t first) { whole = whole && whole_multiples(x + first, layout.inner, smallest); });
    if (whole) return smallest / std::floor(127.0 / std::nearbyint(largest / smallest));
  }
  return std::max(static_cast<double>(static_cast<float>(largest / 127.0)), 1e-12);
}

// Writes one channel's quantised values in [-7, 7]; returns their scale.
double four_bits_of(const float* x, const Layout& layout, std::size_t channel, std::int8_t* values) {
  const simd::BulkLoops& loops = simd::bulk_loops();
  if (layout.outer == 1) {
    const std::size_t first = channel * layout.inner;
    return loops.four_bits(x + first, layout.inner, values + first);
  }
  float largest = 0;
  layout.each_run(channel, [&](std::size_t first) {
    largest = std::max(largest, loops.magnitudes(x + first, layout.inner).largest);
  });
  float scales[16], errors[16] = {};
  loops.four_bit_scales(largest, scales);
  layout.each_run(channel, [&](std::size_t first) { loops.coding_errors(x + first, layout.inner, scales, 7, errors); });
  const double best = scales[std::min_element(std::begin(errors), std::end(errors)) - std::begin(errors)];
  layout.each_run(channel, [&](std::size_t first) { loops.encode(x + first, layout.inner, best, 7, values + first); });
  return best;
}

}  // namespace

Tensor quantise_weight(const Tensor& weight, int axis, bool four_bits) {
  const Bytes floats = as_f32(weight);
  const float* x = floats.as<float>().data();
  const Layout layout = layout_of(weight.type.shape, axis);
  Scales scales{std::vector<double>(layout.channels), std::vector<std::int64_t>(layout.channels, 0)};
  scales.axis = axis;
  scales.highest = four_bits ? 7 : 127;
  scales.lowest = -scales.highest;
  std::int8_t* values = nullptr;
  const Bytes content = Bytes::fresh(static_cast<std::size_t>(weight.type.shape.elements()), values);
  const std::size_t elements = std::max<std::size_t>(layout.outer * layout.inner, 1);
  in_parallel(layout.channels, (1 << 16) / elements + 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) {
      if (four_bits) {
        scales.scale[c] = four_bits_of(x, layout, c, values);
        continue;
      }
      scales.scale[c] = scale_of(x, layout, c);
      layout.each_run(c, [&](std::size_t first) {
        simd::bulk_loops().encode(x + first, layout.inner, scales.scale[c], 127, values + first);
      });
    }
  });
  return {{DType::i8, weight.type.shape, scales}, content};
}

Tensor quantise_matrix_to_int16(const Tensor& matrix) {
  const Bytes floats = converted({matrix.type, matrix.data.data()}, DType::f64);
  const std::span<const double> x = floats.as<double>();
  double largest = 0;
  for (double value : x) largest = std::max(largest, std::fabs(value));
  const Scales scales = symmetric_scales(largest, DType::i16);
  std::vector<double> values(x.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::nearbyint(x[i] / scales.scale[0]);
  return {{DType::i16, matrix.type.shape, scales}, constant_bytes(DType::i16, values)};
}

}  // namespace tosaic
