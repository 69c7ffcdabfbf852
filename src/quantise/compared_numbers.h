// SPDX-License-Identifier: Apache-2.0
// Numbers that tensors are compared with. Codes are as near to a number as half a step: where the samples hold just
// that number (labels of -1 and 1, classes, marks), x == 1 has to hold for the code that 1 becomes, and x < 1 must not.
// Where they do not, the number is a threshold, which the codes on its two sides are told apart by as it is.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// A call that compares its operands: ==, <, and the like.
bool compares(const Graph& graph, const Node& node);

class ComparedNumbers {
 public:
  explicit ComparedNumbers(const Graph& graph);

  // One look at a tensor.
  void see(ValueId v, std::span<const float> x);
  // After all samples, on the graph with its types: numbers that were met become their codes.
  void round(Graph& graph) const;

 private:
  struct Comparison {
    ValueId result;
    std::map<float, bool> met;  // by number
  };
  std::vector<Comparison> comparisons_;
  std::map<ValueId, std::vector<std::size_t>> of_;  // by tensor
};

}  // namespace tosaic
