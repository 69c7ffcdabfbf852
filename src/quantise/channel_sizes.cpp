// SPDX-License-Identifier: Apache-2.0
#include "quantise/channel_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

struct Sums {
  explicit Sums(std::size_t channels)
      : lowest(channels, std::numeric_limits<float>::infinity()),
        highest(channels, -std::numeric_limits<float>::infinity()),
        sums(channels),
        squares(channels) {}
  std::vector<float> lowest, highest;
  std::vector<double> sums, squares;
  // An element of each channel, side by side.
  void add(const float* x) {
    simd::bulk_loops().measure(x, squares.size(), lowest.data(), highest.data(), squares.data());
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += x[c];
  }
  // Elements of one.
  void add(const float* x, std::span<const std::int64_t> positions, std::size_t channel) {
    float low = lowest[channel], high = highest[channel];
    double sum = 0, square = 0;
    for (const std::int64_t p : positions) {
      low = std::min(low, x[p]);
      high = std::max(high, x[p]);
      sum += x[p];
      square += static_cast<double>(x[p]) * x[p];
    }
    lowest[channel] = low, highest[channel] = high;
    sums[channel] += sum, squares[channel] += square;
  }
};

}  // namespace

void ChannelSizes::see(const Placed& x, int dim, ThreadPool& pool) {
  std::vector<Ints> around = x.offsets;
  const Ints channels = std::exchange(around[static_cast<std::size_t>(dim)], {0});
  const Ints positions = joined(around);  // of a channel's elements, from its first
  const auto count = static_cast<std::int64_t>(positions.size()), n = static_cast<std::int64_t>(channels.size());
  if (count == 0 || n == 0) return;
  const bool adjoin = channels.back() - channels.front() == n - 1 && std::ranges::is_sorted(channels);
  const std::int64_t parts = std::clamp<std::int64_t>((count * n) >> 15, 1, std::min<std::int64_t>(count, 16));
  std::vector<Sums> found(static_cast<std::size_t>(parts), Sums(channels.size()));
  pool.run(parts, [&](std::int64_t part, int) {
    Sums& sums = found[static_cast<std::size_t>(part)];
    const std::span its(positions.begin() + count * part / parts, positions.begin() + count * (part + 1) / parts);
    if (adjoin)
      for (const std::int64_t p : its) sums.add(x.x + channels[0] + p);
    else
      for (std::size_t c = 0; c < channels.size(); ++c) sums.add(x.x + channels[c], its, c);
  });
  Sums& all = found[0];
  for (std::size_t part = 1; part < found.size(); ++part)
    for (std::size_t c = 0; c < channels.size(); ++c) {
      all.lowest[c] = std::min(all.lowest[c], found[part].lowest[c]);
      all.highest[c] = std::max(all.highest[c], found[part].highest[c]);
      all.sums[c] += found[part].sums[c];
      all.squares[c] += found[part].squares[c];
    }
  for (auto* ends : {&lowest_, &highest_, &next_lowest_, &next_highest_}) ends->resize(channels.size());
  least_.resize(channels.size(), std::numeric_limits<float>::infinity());
  most_.resize(channels.size(), -std::numeric_limits<float>::infinity());
  sums_.resize(channels.size());
  squares_.resize(channels.size());
  for (std::size_t c = 0; c < channels.size(); ++c) {
    least_[c] = std::min(least_[c], all.lowest[c]);
    most_[c] = std::max(most_[c], all.highest[c]);
    next_lowest_[c] = std::min(next_lowest_[c], std::max(lowest_[c], all.lowest[c]));
    next_highest_[c] = std::max(next_highest_[c], std::min(highest_[c], all.highest[c]));
    lowest_[c] = std::min(lowest_[c], all.lowest[c]);
    highest_[c] = std::max(highest_[c], all.highest[c]);
    sums_[c] += all.sums[c];
    squares_[c] += all.squares[c];
  }
  count_ += count;
  for (double& square : all.squares) square /= static_cast<double>(count);
  energies_.push_back(std::accumulate(all.squares.begin(), all.squares.end(), 0.0) / static_cast<double>(n));
  mean_squares_.push_back(std::move(all.squares));
}

double ChannelSizes::relative_square(std::size_t channel, double floor) const {
  double sum = 0;
  for (std::size_t s = 0; s < energies_.size(); ++s) sum += mean_squares_[s][channel] / (energies_[s] + floor);
  return sum / static_cast<double>(energies_.size());
}

double ChannelSizes::relative_one(double floor) const {
  double sum = 0;
  for (const double energy : energies_) sum += 1 / (energy + floor);
  return sum / static_cast<double>(energies_.size());
}

Range ChannelSizes::bulk(std::size_t channel) const {
  constexpr double deviations = 6;
  const auto count = static_cast<double>(count_);
  const double mean = sums_[channel] / count,
               reach = deviations * std::sqrt(std::max(0.0, squares_[channel] / count - mean * mean));
  return {std::max<double>(least_[channel], mean - reach), std::min<double>(most_[channel], mean + reach)};
}

double ChannelSizes::lowest() const { return *std::ranges::min_element(lowest_); }
double ChannelSizes::highest() const { return *std::ranges::max_element(highest_); }

bool ChannelSizes::known() const {
  return count_ > 0 && std::ranges::all_of(squares_, [](double sum) { return std::isfinite(sum); });
}

}  // namespace tosaic
