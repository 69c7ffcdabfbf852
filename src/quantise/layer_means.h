// SPDX-License-Identifier: Apache-2.0
// What the samples multiply each element of a weight with, in the mean over samples and positions of the result: what
// tells a layer's mean result, for any weight. Private to quantise/.
#pragma once
#include <map>
#include <vector>

#include "base/system/thread_pool.h"
#include "quantise/window.h"

namespace tosaic {

class LayerMeans {
 public:
  LayerMeans() = default;
  // `samples`: as many looks there will be at each tensor.
  explicit LayerMeans(std::size_t samples) : samples_(samples) {}
  void want(const Window& window);
  // `look`: at v. The sums do not depend on the number of threads.
  void see(ValueId v, const Look& look, ThreadPool& pool);
  // Values of another program, by what they were called; a tensor that it has not is forgotten.
  void rename(const std::map<ValueId, ValueId>& now);
  // Per channel of the operand, and tap of the kernel. Empty: never seen, or something was not finite.
  std::vector<double> of(const Window& window) const;

 private:
  struct Sums {
    Window window;
    std::vector<double> by_tap;  // [taps of the kernel, channels]
    std::size_t looks = 0;
  };
  std::size_t samples_ = 0;
  std::multimap<ValueId, Sums> sums_;
};

}  // namespace tosaic
