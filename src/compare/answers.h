// SPDX-License-Identifier: Apache-2.0
// How often a program names the class that a label says, in floats and as it is quantised.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/tensor.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

class Answers {
 public:
  // The labels of `samples` samples, one after the other. Error: compare.labels, where they are not as many for each.
  static Result<Answers> make(std::span<const std::int64_t> labels, std::size_t samples);
  // The results for the next sample, classes along the last dim. Error: compare.labels: another number of rows.
  Status add(const Tensor& floats, const Tensor& quantised);
  const RightAnswers& right() const { return right_; }

 private:
  Answers(std::span<const std::int64_t> labels, std::size_t each) : labels_(labels), each_(each) {}

  std::span<const std::int64_t> labels_;
  std::size_t each_;  // labels of a sample
  RightAnswers right_;
};

}  // namespace tosaic
