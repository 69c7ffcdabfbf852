// SPDX-License-Identifier: Apache-2.0
// Rounding by least squares. The nearest quantised value is the best one for a weight alone; what counts is the error
// of the sum that it goes into, |X (w - wq)|^2 over the samples' rows X. Where inputs go together, the rounding of one
// weight can take back what that of others did. So the weights of a channel are rounded one after the other, and each
// is moved first by what it can take back: the nearest plane of a lattice (Babai), which is what Frantar et al. do,
// "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers", ICLR 2023, section 3.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/system/thread_pool.h"

namespace tosaic {

// The rows of inputs that samples show, [count, inputs], `stride` elements apart.
struct SampleRows {
  const float* first;
  std::size_t count, inputs, stride;
};

// A channel's weights, rounded somehow; its better quantised values and scales take their place.
struct RoundedChannel {
  const float* weights;  // one per input
  std::int8_t* values;
  std::span<double> scales;  // one for each group of neighbouring inputs, which are as many in all groups
};

class LeastSquares {
 public:
  // `centred`: only how sums vary counts, because a bias corrects their mean. No row may hold a NaN or an infinity, or
  // nothing is known.
  LeastSquares(const SampleRows& rows, bool centred, ThreadPool& pool);

  // Rounds to [-highest, highest]. Each channel has the least error over the rows of: its values so far, those for
  // their scales, and, where `choose_scales`, those for other scales of four bits. All channels have as many scales.
  // The same for any number of threads.
  void round(std::span<const RoundedChannel> channels, int highest, bool choose_scales, ThreadPool& pool) const;

 private:
  struct Column;
  std::vector<Column> candidates(const RoundedChannel& channel, int highest, bool choose_scales) const;
  std::vector<double> scales_alone(const RoundedChannel& channel, int highest) const;
  void round_together(std::span<const RoundedChannel> channels, int highest, bool choose_scales) const;
  void factorise(ThreadPool& pool);

  std::size_t inputs_;
  std::vector<std::size_t> order_;  // in which inputs stand in what follows: those that vary most are rounded first
  std::vector<double> variances_;
  double damping_ = 0;  // added to each variance
  // X'X = U' D U: the rows of U, whose diagonal is 1, and D. No elements: nothing is known.
  std::vector<double> unit_rows_, diagonal_;
};

}  // namespace tosaic
