// SPDX-License-Identifier: Apache-2.0
// Redirecting the readers of a value to an equal one, keeping the names of graph outputs.
#pragma once
#include <numeric>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Values to be read in place of others; built during a walk, applied by rewriting operands and outputs.
class Forward {
 public:
  explicit Forward(const Graph& graph) : to_(graph.values.size()) { std::iota(to_.begin(), to_.end(), 0); }
  ValueId operator()(ValueId v) const { return v == no_value || v >= to_.size() ? v : to_[v]; }
  // `from`'s readers take `to` (already forwarded) from now on.
  void set(ValueId from, ValueId to) {
    to_[from] = to;
    changed_ = true;
  }
  bool changed() const { return changed_; }
  void operands(Node& node) const {
    for (ValueId& v : node.inputs) v = (*this)(v);
  }
  void outputs(Graph& graph) const {
    for (ValueId& v : graph.outputs) v = (*this)(v);
  }

 private:
  std::vector<ValueId> to_;
  bool changed_ = false;
};

}  // namespace tosaic
