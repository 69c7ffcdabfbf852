// SPDX-License-Identifier: Apache-2.0
// How large the elements of each channel of a tensor are, over the samples. Private to quantise/.
#pragma once
#include <vector>

#include "base/system/thread_pool.h"
#include "quantise/observe.h"
#include "quantise/window.h"

namespace tosaic {

class ChannelSizes {
 public:
  // One sample's tensor, whose `dim` has the channels. The sums do not depend on the number of threads.
  void see(const Placed& x, int dim, ThreadPool& pool);
  // Was anything seen, and all of it finite?
  bool known() const;
  std::size_t channels() const { return squares_.size(); }
  std::int64_t count() const { return count_; }  // of the elements of a channel
  // Where nearly all of a channel's elements lie: six deviations around their mean, no further than any does.
  Range bulk(std::size_t channel) const;
  // Of all channels; zero is always inside.
  double lowest() const;
  double highest() const;
  // What other samples may have in the channel: as much beyond all of these as the furthest is beyond the next one, as
  // a ratio. Infinite, where one sample alone has anything there.
  double likely_lowest(std::size_t channel) const { return beyond(lowest_[channel], next_lowest_[channel]); }
  double likely_highest(std::size_t channel) const { return beyond(highest_[channel], next_highest_[channel]); }
  // Means over the samples, each in terms of its own mean square over all channels, so that the quiet ones count as
  // much as the loud: of the channel's mean square, and of 1. `floor`: of mean squares, what is added to each.
  double relative_square(std::size_t channel, double floor) const;
  double relative_one(double floor) const;

 private:
  static double beyond(double furthest, double next) { return furthest == 0 ? 0 : furthest * (furthest / next); }

  std::vector<float> least_, most_;
  // With zero inside.
  std::vector<float> lowest_, highest_, next_lowest_, next_highest_;  // next: of all samples but one
  std::vector<double> sums_, squares_;
  std::vector<std::vector<double>> mean_squares_;  // of each sample, by channel
  std::vector<double> energies_;                   // of each sample, the mean of these
  std::int64_t count_ = 0;                         // elements of a channel
};

}  // namespace tosaic
