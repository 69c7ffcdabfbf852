// SPDX-License-Identifier: Apache-2.0
// How far a tensor is from what it should be, summed over samples.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/tensor.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

// Infinity where there is no noise.
double signal_to_noise_db(double signal, double noise);

class Difference {
 public:
  // Of a tensor of this type; `channel_dim` -1: its channels are not known.
  Difference(const TensorType& type, int channel_dim);
  // Is it of the type?
  bool takes(const Tensor& got) const;
  // One sample: `wanted` has its elements in floats, `got` in integers with the type's scale, or in floats, too.
  void add(const Tensor& wanted, const Tensor& got);

  // Minus infinity where nothing but NaN was wanted: who asks is to look there.
  double db() const;
  // Of a term, what it loses next to a sum that it is part of, which may have more elements.
  double db_beside(const Difference& sum) const;
  TensorError error() const;
  // Of quantised tensors and of narrow floats. Saturated is what lies beyond the end of the range by more than the
  // rounding.
  std::optional<double> saturated() const;
  // Of narrow floats: the share of what is not 0 that lies where the type has fewer digits, or none.
  double denormal() const { return nonzero_ > 0 ? denormal_ / nonzero_ : 0; }
  std::optional<double> range_used() const;
  // The greatest magnitude of the floats, of each channel and at all.
  const std::vector<double>& largest() const { return largest_; }
  double largest_of_all() const;
  int channel_dim() const { return channel_dim_; }

 private:
  struct Sums {
    double signal = 0, noise = 0, product = 0, got = 0;
  };
  template <class T>
  void add_elements(std::span<const float> wanted, std::span<const T> got);

  TensorType type_;
  int channel_dim_;
  std::size_t channels_ = 1, inner_ = 1;  // elements of one channel that are neighbours
  Sums all_;
  std::vector<Sums> by_channel_;
  std::vector<double> largest_;
  std::int64_t lowest_ = 0, highest_ = 0;  // quantised values that were seen, and that of zero
  double clipped_ = 0, denormal_ = 0, nonzero_ = 0, count_ = 0, undefined_ = 0;
};

}  // namespace tosaic
