// SPDX-License-Identifier: Apache-2.0
// The profiles of several runs of a program, as one.
#pragma once
#include <vector>

#include "tosaic/files.hpp"

namespace tosaic {

class RepeatedProfile {
 public:
  void add(const std::vector<OperationTime>& run);
  // In the order of the first run; what only a later one did (another branch) stands at the end.
  std::vector<MeasuredOperation> times() const;

 private:
  struct Part {
    OperationTime first;
    std::vector<double> seconds;
  };
  std::vector<Part> parts_;
};

}  // namespace tosaic
