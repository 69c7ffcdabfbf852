// SPDX-License-Identifier: Apache-2.0
// What reductions make of two elements.
#pragma once
#include "shaders/kernels.h"

namespace tosaic::shaders {

class Reduction {
 public:
  explicit Reduction(const Node& node);
  Value operator()(Value folded, Value x) const;

 private:
  std::string_view op_;
  bool ignores_nan_;
};

}  // namespace tosaic::shaders
