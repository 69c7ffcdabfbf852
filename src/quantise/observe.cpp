// SPDX-License-Identifier: Apache-2.0
#include "quantise/observe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// A range of nothing but zeros still needs a scale; any other has its own.
constexpr double scale_of_zeros = 1.0 / 65536;
double scale_of(double range, double steps) {
  return range > 0 ? std::max(static_cast<double>(static_cast<float>(range / steps)), smallest_scale) : scale_of_zeros;
}

// How many threads have enough to do with n elements.
std::size_t parts_of(std::size_t n, const ThreadPool& pool) {
  return std::clamp<std::size_t>(n >> 15, 1, static_cast<std::size_t>(pool.threads()));
}

}  // namespace

Range range_of(std::span<const float> x, ThreadPool& pool) {
  std::vector<simd::Extremes> found(parts_of(x.size(), pool));
  pool.run(static_cast<std::int64_t>(found.size()), [&](std::int64_t task, int) {
    const auto part = static_cast<std::size_t>(task);
    const std::size_t first = x.size() * part / found.size(), end = x.size() * (part + 1) / found.size();
    found[part] = simd::bulk_loops().extremes(x.data() + first, end - first);
  });
  Range range;
  for (const simd::Extremes& part : found) range.include(Range{part.lowest, part.highest, part.all_finite});
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

void Histogram::add(std::span<const float> x, const Range& range, ThreadPool& pool) {
  cover(range);
  const double width = range_.highest - range_.lowest;
  if (!(width > 0)) return;
  count_ += x.size();
  const auto low = static_cast<float>(range_.lowest);
  const auto per_unit = static_cast<float>(bins / width);
  const std::size_t parts = parts_of(x.size(), pool);
  // Four tables in turn: equal neighbours (zeros after relu) would otherwise wait for each other.
  std::vector<std::uint32_t> tables(parts * 4 * bins, 0);
  pool.run(static_cast<std::int64_t>(parts), [&](std::int64_t task, int) {
    const auto part = static_cast<std::size_t>(task);
    std::uint32_t* table = tables.data() + part * 4 * bins;
    std::array<std::uint32_t, 256> bin;
    const std::size_t end = x.size() * (part + 1) / parts;
    for (std::size_t i = x.size() * part / parts; i < end; i += bin.size()) {
      const std::size_t count = std::min(bin.size(), end - i);
      simd::bulk_loops().bins(x.data() + i, count, low, per_unit, bins - 1, bin.data());
      std::size_t k = 0;
      for (; k + 4 <= count; k += 4) {
        ++table[bin[k]];
        ++table[bins + bin[k + 1]];
        ++table[2 * bins + bin[k + 2]];
        ++table[3 * bins + bin[k + 3]];
      }
      for (; k < count; ++k) ++table[bin[k]];
    }
  });
  for (std::size_t t = 0; t < parts * 4; ++t)
    for (std::size_t b = 0; b < bins; ++b) counts_[b] += tables[t * bins + b];
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
    const int from_before = from, to_before = to;
    for (int f = 0; f <= std::min(zero, to - 1); ++f)
      if (double e = error_of(f, to); e < best) {
        best = e;
        from = f;
      }
    if (round > 0 && from == from_before) break;
    for (int t = std::max(zero, from + 1); t <= bins; ++t)
      if (double e = error_of(from, t); e < best) {
        best = e;
        to = t;
      }
    if (to == to_before) break;
  }
  return {range_.lowest + from * bin, range_.lowest + to * bin};
}

double Histogram::share(double lowest, double width) const {
  if (count_ == 0) return 0;
  const double bin = (range_.highest - range_.lowest) / bins;
  const auto bin_of = [&](double x) { return std::clamp((x - range_.lowest) / bin, 0.0, static_cast<double>(bins)); };
  // Bins beside these have nothing of it.
  const auto first = static_cast<std::size_t>(std::max(0.0, bin_of(lowest) - 1)),
             end = std::min<std::size_t>(bins, static_cast<std::size_t>(bin_of(lowest + width)) + 2);
  double inside = 0;
  for (std::size_t b = first; b < end; ++b) {
    const double from = range_.lowest + static_cast<double>(b) * bin;
    const double overlap = std::min(from + bin, lowest + width) - std::max(from, lowest);
    inside += static_cast<double>(counts_[b]) * std::max(0.0, overlap) / bin;
  }
  return inside / static_cast<double>(count_);
}

double Histogram::variance() const {
  if (count_ == 0) return 0;
  double sum = 0, squares = 0;  // in bins
  for (std::size_t b = 0; b < bins; ++b) {
    const auto at = static_cast<double>(b), count = static_cast<double>(counts_[b]);
    sum += count * at;
    squares += count * at * at;
  }
  const auto elements = static_cast<double>(count_);
  const double bin = (range_.highest - range_.lowest) / bins, mean = sum / elements;
  return bin * bin * std::max(0.0, squares / elements - mean * mean);
}

Scales affine_scales(const Range& range, DType dtype) {
  const auto limits = range_of(dtype);
  const double steps = static_cast<double>(limits.highest - limits.lowest);
  Scales s;
  s.scale = {scale_of(range.highest - range.lowest, steps)};
  const double zero = static_cast<double>(limits.lowest) - range.lowest / s.scale[0];
  s.zero_point = {static_cast<std::int64_t>(
      std::clamp(std::nearbyint(zero), static_cast<double>(limits.lowest), static_cast<double>(limits.highest)))};
  return s;
}

Scales symmetric_scales(double largest, DType dtype) {
  const double highest = static_cast<double>(range_of(dtype).highest);
  return Scales{{scale_of(largest, highest)}, {0}};
}

}  // namespace tosaic
