// SPDX-License-Identifier: Apache-2.0
// Factors that stand before nothing. A row of zeros (a padded position of a window, a masked token) has size 0, and
// what divides by it, x / max(|x|, 1e-12), multiplies by 1e12: 0 in the end, but a scale that holds 1e12 holds no other
// row's factor. What counts of a factor is what meets elements that have a quantised value of their own: beyond that it
// may saturate.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

class CountedFactors {
 public:
  // Groups of factors that come from a function with a pole at 0 (1 / x, rsqrt(x)) and that nothing but products
  // reads.
  CountedFactors(const Graph& graph, const QuantisationPlan& plan);

  // The program that also computes what counts of each factor, as values of its own: the first graph's keep their ids.
  // nullopt: there is no factor.
  std::optional<Graph> with_counted(const Graph& graph, const QuantisationPlan& plan);
  bool counted(ValueId v) const { return group_of_.contains(v); }
  // A look at what counts.
  void see(ValueId v, const Range& range) { ranges_[group_of_.at(v)].include(range); }
  // The range of what counts in each group whose own range is mostly something else.
  std::map<ValueId, Range> ranges(const std::map<ValueId, Range>& seen) const;

 private:
  struct Product {
    std::size_t node, factor;  // the call, which of its operands is the factor
  };
  std::vector<Product> products_;
  std::map<ValueId, ValueId> group_of_;  // what counts -> the group
  std::map<ValueId, Range> ranges_;      // per group
};

}  // namespace tosaic
