// SPDX-License-Identifier: Apache-2.0
// The range of a tensor over the calibration samples, and the scales that follow.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/system/thread_pool.h"
#include "ir/type.h"

namespace tosaic {

struct Range {
  double lowest = 0, highest = 0;  // zero is always inside: it must be exact (padding, relu)
  bool all_finite = true;          // nothing was left out: no element was NaN or infinite
  void include(double value) {
    if (value < lowest) lowest = value;
    if (value > highest) highest = value;
  }
  void include(const Range& other) {
    include(other.lowest);
    include(other.highest);
    all_finite &= other.all_finite;
  }
};

// Of finite elements; it does not depend on the number of threads.
Range range_of(std::span<const float> x, ThreadPool& pool);

class Histogram {
 public:
  // `range` is the tensor's own, or wider. What was counted before moves to the bins of the range that holds both, so
  // that one look at each tensor is enough.
  void add(std::span<const float> x, const Range& range, ThreadPool& pool);
  // The sub-range whose quantisation to `levels` steps has the least expected squared error.
  Range best_range(int levels) const;
  // The share of elements from `lowest` on, below `lowest` + `width`.
  double share(double lowest, double width) const;
  // Of the elements, to the width of a bin; 0 where there are none.
  double variance() const;
  static constexpr int bins = 2048;

 private:
  void cover(const Range& range);
  Range range_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;  // of all bins
};

inline constexpr double smallest_scale = 1e-36;         // f32 holds its reciprocal
Scales affine_scales(const Range& range, DType dtype);  // zero point anywhere
Scales symmetric_scales(double largest, DType dtype);   // zero point 0

}  // namespace tosaic
