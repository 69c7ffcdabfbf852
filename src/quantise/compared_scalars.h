// SPDX-License-Identifier: Apache-2.0
// Scalars that tensors are compared with. Quantised values are as near to a number as half a step: where the samples
// hold just that number (labels of -1 and 1, classes, marks), x == 1 has to hold for the quantised value that 1
// becomes, and x < 1 must not. Where they do not, the number is a threshold, which the quantised values on its two
// sides are distinguished by as it is.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// The call's operand `other`, where it is a number.
std::optional<double> scalar_of(const Node& node);

// A call that compares its operands: ==, <, and the like.
bool compares(const Graph& graph, const Node& node);

class ComparedScalars {
 public:
  explicit ComparedScalars(const Graph& graph);

  // One look at a tensor.
  void see(ValueId v, std::span<const float> x);
  // After all samples, on the graph with its types: numbers that were met become their quantised values.
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
