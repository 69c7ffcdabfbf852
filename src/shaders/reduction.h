// SPDX-License-Identifier: Apache-2.0
// What reductions make of two elements.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

class Reduction {
 public:
  explicit Reduction(const Node& node);
  Value operator()(Value folded, Value x) const;
  // Of no integers: what any other one folded with it leaves as it is.
  Value of_nothing(Shader& shader) const;

 private:
  std::string_view op_;
  bool ignores_nan_;
};

}  // namespace tosaic::shaders
