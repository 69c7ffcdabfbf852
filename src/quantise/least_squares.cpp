// SPDX-License-Identifier: Apache-2.0
// All in double, and in an order that depends on nothing but the sizes.
#include "quantise/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "simd/bulk_loops.h"
#include "simd/products.h"

namespace tosaic {
namespace {

constexpr std::size_t tile = 32;             // rows of a matrix that are worked on together
constexpr std::size_t columns_at_once = 64;  // of channels and their candidates
constexpr std::size_t few_inputs = 64;       // for which all scales are tried

template <class F>
void for_tiles(std::size_t first, std::size_t end, ThreadPool& pool, const F& f) {
  if (first >= end) return;
  pool.run(static_cast<std::int64_t>((end - first + tile - 1) / tile), [&](std::int64_t task, int) {
    const std::size_t i = first + static_cast<std::size_t>(task) * tile;
    f(i, std::min(end, i + tile));
  });
}

// To the nearest integer, ties to even; x is small.
double nearest(double x) {
  constexpr double whole = 6755399441055744.0;  // 1.5 * 2^52: no room for fractions
  return (x + whole) - whole;
}
double rounded(double x, double per_unit, double highest) {
  return nearest(std::max(-highest, std::min(highest, x * per_unit)));
}

}  // namespace

struct LeastSquares::Column {
  std::vector<double> scales;
  bool fixed;  // the values that the channel has
  double error = 0;
};

LeastSquares::LeastSquares(const SampleRows& rows, bool centred, ThreadPool& pool) : inputs_(rows.inputs) {
  const std::size_t n = inputs_;
  std::vector<double> mean(n, 0), variance(n, 0);
  if (centred) {
    for (std::size_t r = 0; r < rows.count; ++r)
      for (std::size_t i = 0; i < n; ++i) mean[i] += rows.first[r * rows.stride + i];
    for (double& m : mean) m /= static_cast<double>(rows.count);
  }
  double squares = 0;
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t i = 0; i < n; ++i) {
      const double whole = rows.first[r * rows.stride + i], x = whole - mean[i];
      squares += whole * whole;
      variance[i] += x * x;
    }
  const double all = std::accumulate(variance.begin(), variance.end(), 0.0);
  if (!(all > 1e-12 * squares) || !std::isfinite(squares)) return;  // of constants, roundings are left
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return variance[i]; });
  // What few rows say of many inputs holds for these rows alone.
  damping_ = all / static_cast<double>(n) * (0.01 + 0.05 * static_cast<double>(n) / static_cast<double>(rows.count));
  variances_ = variance;
  for (double& v : variances_) v += damping_;

  std::vector<double> x(rows.count * n);
  for (std::size_t r = 0; r < rows.count; ++r)
    for (std::size_t i = 0; i < n; ++i) x[r * n + i] = rows.first[r * rows.stride + order_[i]] - mean[order_[i]];
  unit_rows_.assign(n * n, 0);
  for_tiles(0, n, pool, [&](std::size_t first, std::size_t end) {
    double* to = unit_rows_.data() + first * n + first;
    constexpr std::size_t step = 128;  // rows that lie in the cache
    for (std::size_t r = 0; r < rows.count; r += step) {
      const double* from = x.data() + r * n + first;
      simd::subtract_products(to, n, end - first, n - first, std::min(step, rows.count - r), {from, n, 1}, from, n);
    }
    for (std::size_t i = first; i < end; ++i) {
      for (std::size_t j = i; j < n; ++j) unit_rows_[i * n + j] = -unit_rows_[i * n + j];
      unit_rows_[i * n + i] += damping_;
    }
  });
  factorise(pool);
}

// Cholesky's factor, tile by tile: of X'X only what is on and above the diagonal is read.
void LeastSquares::factorise(ThreadPool& pool) {
  const std::size_t n = inputs_;
  double* u = unit_rows_.data();
  diagonal_.resize(n);
  for (std::size_t first = 0; first < n; first += tile) {
    const std::size_t end = std::min(n, first + tile);
    for (std::size_t i = first; i < end; ++i) {
      double* row = u + i * n + i;
      simd::subtract_products(row, n, 1, n - i, i - first, {u + first * n + i, n, 1}, u + first * n + i, n);
      const double root = std::sqrt(row[0]);
      if (!(root > 0)) {  // no damping was enough: the sizes of inputs are too far apart
        unit_rows_.clear();
        return;
      }
      for (std::size_t j = 0; j < n - i; ++j) row[j] /= root;
    }
    for_tiles(end, n, pool, [&](std::size_t i, std::size_t i_end) {
      simd::subtract_products(u + i * n + i, n, i_end - i, n - i, end - first, {u + first * n + i, n, 1},
                              u + first * n + i, n);
    });
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double root = u[i * n + i];
    diagonal_[i] = root * root;
    for (std::size_t j = i; j < n; ++j) u[i * n + j] /= root;
  }
}

// Its values so far are the first.
std::vector<LeastSquares::Column> LeastSquares::candidates(const RoundedChannel& channel, int highest,
                                                           bool choose_scales) const {
  const std::vector<double> scales(channel.scales.begin(), channel.scales.end());
  std::vector<Column> found = {{scales, true}, {scales, false}};
  if (!choose_scales) return found;
  if (inputs_ > few_inputs || scales.size() > 1) {
    found[1].scales = scales_alone(channel, highest);
    return found;
  }
  float largest = 0;
  for (std::size_t i = 0; i < inputs_; ++i) largest = std::max(largest, std::fabs(channel.weights[i]));
  float scales_to_try[16];
  simd::bulk_loops().four_bit_scales(largest, scales_to_try);
  for (const float scale : scales_to_try) found.push_back({{scale}, false});
  return found;
}

// The best ones if nothing could be taken back: nearly the best ones.
std::vector<double> LeastSquares::scales_alone(const RoundedChannel& channel, int highest) const {
  const std::size_t groups = channel.scales.size(), each = inputs_ / groups;
  std::vector<double> best(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    float largest = 0;
    for (std::size_t i = g * each; i < (g + 1) * each; ++i) largest = std::max(largest, std::fabs(channel.weights[i]));
    double least = INFINITY;
    float scales[16];
    simd::bulk_loops().four_bit_scales(largest, scales);
    for (const float scale : scales) {
      double error = 0;
      for (std::size_t i = g * each; i < (g + 1) * each; ++i) {
        const double w = channel.weights[i], off = w - scale * rounded(w, 1 / scale, highest);
        error += variances_[i] * off * off;
      }
      if (!(error < least)) continue;
      least = error;
      best[g] = scale;
    }
  }
  return best;
}

void LeastSquares::round(std::span<const RoundedChannel> channels, int highest, bool choose_scales,
                         ThreadPool& pool) const {
  if (unit_rows_.empty() || channels.empty()) return;
  const bool tries_all = choose_scales && inputs_ <= few_inputs && channels[0].scales.size() == 1;
  const std::size_t at_once = columns_at_once / (tries_all ? 18 : 2);
  pool.run(static_cast<std::int64_t>((channels.size() + at_once - 1) / at_once), [&](std::int64_t task, int) {
    const std::size_t first = static_cast<std::size_t>(task) * at_once;
    round_together(channels.subspan(first, std::min(at_once, channels.size() - first)), highest, choose_scales);
  });
}

// Column by column of what is rounded, from the last input to the first: with e = w - wq,
// |X e|^2 = sum of D[i] (e[i] + sum of U[i][j] e[j], j > i)^2.
void LeastSquares::round_together(std::span<const RoundedChannel> channels, int highest, bool choose_scales) const {
  std::vector<Column> columns;
  std::vector<std::size_t> channel_of;
  for (std::size_t c = 0; c < channels.size(); ++c)
    for (const Column& column : candidates(channels[c], highest, choose_scales)) {
      columns.push_back(column);
      channel_of.push_back(c);
    }
  const std::size_t n = columns.size();
  const std::size_t groups = channels[0].scales.size(), each = inputs_ / groups;
  std::vector<double> away(inputs_ * n), goals(tile * n), scales(groups * n), per_unit(groups * n);  // away: wq - w
  std::vector<std::int8_t> values(inputs_ * n);
  for (std::size_t g = 0; g < groups; ++g)
    for (std::size_t c = 0; c < n; ++c) {
      scales[g * n + c] = columns[c].scales[g];
      per_unit[g * n + c] = 1 / columns[c].scales[g];
    }
  for (std::size_t end = inputs_; end > 0;) {
    const std::size_t first = (end - 1) / tile * tile;
    for (std::size_t i = first; i < end; ++i)
      for (std::size_t c = 0; c < n; ++c) goals[(i - first) * n + c] = channels[channel_of[c]].weights[order_[i]];
    const auto take_back = [&](std::size_t i, std::size_t i_end, std::size_t from, std::size_t to) {
      simd::subtract_products(goals.data() + (i - first) * n, n, i_end - i, n, to - from,
                              {unit_rows_.data() + i * inputs_ + from, 1, inputs_}, away.data() + from * n, n);
    };
    take_back(first, end, end, inputs_);
    for (std::size_t i = end; i-- > first;) {
      take_back(i, i + 1, i + 1, end);
      const std::size_t first_scale = order_[i] / each * n;
      for (std::size_t c = 0; c < n; ++c) {
        const RoundedChannel& channel = channels[channel_of[c]];
        const double goal = goals[(i - first) * n + c];
        const double scale = scales[first_scale + c];
        const double value =
            columns[c].fixed ? channel.values[order_[i]] : rounded(goal, per_unit[first_scale + c], highest);
        const double off = goal - value * scale, moved = value * scale - channel.weights[order_[i]];
        // The damping is no error.
        columns[c].error += diagonal_[i] * off * off - damping_ * moved * moved;
        away[i * n + c] = moved;
        values[i * n + c] = static_cast<std::int8_t>(value);
      }
    }
    end = first;
  }
  for (std::size_t c = 0; c < n;) {
    const RoundedChannel& channel = channels[channel_of[c]];
    std::size_t best = c;
    for (const std::size_t of = channel_of[c]; c < n && channel_of[c] == of; ++c)
      if (columns[c].error < columns[best].error) best = c;
    if (!std::ranges::equal(columns[best].scales, channel.scales))  // channels may share theirs
      std::ranges::copy(columns[best].scales, channel.scales.begin());
    for (std::size_t i = 0; i < inputs_; ++i) channel.values[order_[i]] = values[i * n + best];
  }
}

}  // namespace tosaic
