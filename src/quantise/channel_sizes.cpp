// SPDX-License-Identifier: Apache-2.0
#include "quantise/channel_sizes.h"

#include <algorithm>
#include <cmath>

#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// Where a channel's elements stand, from its first.
Ints positions_of(const Placed& x, std::size_t channel_dim) {
  Ints all{0};
  for (std::size_t d = 0; d < x.offsets.size(); ++d) {
    if (d == channel_dim) continue;
    Ints next;
    next.reserve(all.size() * x.offsets[d].size());
    for (const std::int64_t from : all)
      for (const std::int64_t at : x.offsets[d]) next.push_back(from + at);
    all = std::move(next);
  }
  return all;
}

struct Sums {
  explicit Sums(std::size_t channels) : lowest(channels), highest(channels), squares(channels) {}
  std::vector<float> lowest, highest;
  std::vector<double> squares;
  void add(const float* x, std::size_t n, std::size_t channel) {
    simd::bulk_loops().measure(x, n, lowest.data() + channel, highest.data() + channel, squares.data() + channel);
  }
};

}  // namespace

void ChannelSizes::see(const Placed& x, int dim, ThreadPool& pool) {
  const Ints& channels = x.offsets[static_cast<std::size_t>(dim)];
  const Ints positions = positions_of(x, static_cast<std::size_t>(dim));
  const auto count = static_cast<std::int64_t>(positions.size()), n = static_cast<std::int64_t>(channels.size());
  if (count == 0 || n == 0) return;
  const bool adjoin = channels.back() - channels.front() == n - 1 && std::ranges::is_sorted(channels);
  const std::int64_t parts = std::clamp<std::int64_t>((count * n) >> 15, 1, std::min<std::int64_t>(count, 16));
  std::vector<Sums> found(static_cast<std::size_t>(parts), Sums(channels.size()));
  pool.run(parts, [&](std::int64_t part, int) {
    Sums& sums = found[static_cast<std::size_t>(part)];
    for (std::int64_t p = count * part / parts; p < count * (part + 1) / parts; ++p) {
      const float* at = x.x + positions[static_cast<std::size_t>(p)];
      if (adjoin) {
        sums.add(at + channels[0], channels.size(), 0);
        continue;
      }
      for (std::size_t c = 0; c < channels.size(); ++c) sums.add(at + channels[c], 1, c);
    }
  });
  Sums& all = found[0];
  for (std::size_t part = 1; part < found.size(); ++part)
    for (std::size_t c = 0; c < channels.size(); ++c) {
      all.lowest[c] = std::min(all.lowest[c], found[part].lowest[c]);
      all.highest[c] = std::max(all.highest[c], found[part].highest[c]);
      all.squares[c] += found[part].squares[c];
    }
  for (auto* ends : {&lowest_, &highest_, &next_lowest_, &next_highest_}) ends->resize(channels.size());
  squares_.resize(channels.size());
  for (std::size_t c = 0; c < channels.size(); ++c) {
    next_lowest_[c] = std::min(next_lowest_[c], std::max(lowest_[c], all.lowest[c]));
    next_highest_[c] = std::max(next_highest_[c], std::min(highest_[c], all.highest[c]));
    lowest_[c] = std::min(lowest_[c], all.lowest[c]);
    highest_[c] = std::max(highest_[c], all.highest[c]);
    squares_[c] += all.squares[c];
  }
  count_ += count;
}

double ChannelSizes::lowest() const { return *std::ranges::min_element(lowest_); }
double ChannelSizes::highest() const { return *std::ranges::max_element(highest_); }

bool ChannelSizes::known() const {
  return count_ > 0 && std::ranges::all_of(squares_, [](double sum) { return std::isfinite(sum); });
}

}  // namespace tosaic
