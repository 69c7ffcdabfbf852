// SPDX-License-Identifier: Apache-2.0
// Which values of a graph follow from its constants alone, and what they are.
#pragma once
#include <functional>
#include <vector>

#include "plan/uses.h"

namespace tosaic::plan {

class FixedValues {
 public:
  // `compute`: the only output of a graph of constants; null: it cannot. All outlive this.
  FixedValues(const Graph& graph, const Uses& uses,
              const std::function<Result<Bytes>(const Graph& constants)>& compute);

  // Constants, and what nobody may see that nodes without effects make of such.
  bool operator[](ValueId v) const { return v < fixed_.size() && fixed_[v]; }
  // Does something follow from integers of 8 bits as floats?
  bool any_from_int8() const { return any_from_int8_; }
  // Does the node make what does not follow from constants?
  bool is_left(const Node& node) const { return node.outputs.empty() || !(*this)[node.outputs[0]]; }
  // Null: it does not follow from constants, or cannot be computed.
  Result<Bytes> content(ValueId v) const;

 private:
  bool is_fixed(const Node& node) const;

  const Graph& graph_;
  const Uses& uses_;  // of the graph as it was: values that are added later follow from nothing
  const std::function<Result<Bytes>(const Graph& constants)>& compute_;
  std::vector<bool> fixed_;
  bool any_from_int8_ = false;
};

}  // namespace tosaic::plan
