// SPDX-License-Identifier: Apache-2.0
// Which calls and values of a program are still what they were before its norms were written anew. Private to
// quantise/.
#pragma once
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Values below `kept` that exist in both are the same; linear forms are made anew each time, the same before a call
// that is the same.
class Successors {
 public:
  Successors(const Graph& before, const Graph& now, ValueId kept);
  ValueId value(ValueId v) const { return value_[v]; }                       // what it was before, or no_value
  std::optional<std::size_t> node(std::size_t n) const { return node_[n]; }  // what it was before
  bool stays(std::size_t n) const { return stays_[n]; }                      // of before

 private:
  std::vector<ValueId> value_;
  std::vector<std::optional<std::size_t>> node_;
  std::vector<char> stays_;
};

}  // namespace tosaic
