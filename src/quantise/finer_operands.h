// SPDX-License-Identifier: Apache-2.0
// 16 bits for a tensor of 8 whose steps cost its reader too much: where they make it finer, and together with what it
// is made of.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

class FinerOperands {
 public:
  static constexpr int steps = 255;  // between 8-bit values

  // `ranges`: of groups, as the samples show them. `float_ends`: what enters and leaves the program are floats, so that
  // a state, which does both, may have them as well.
  FinerOperands(const Graph& graph, const std::map<ValueId, Range>& ranges, bool float_ends, QuantisationPlan& plan);

  // Can it have 16 bits? Where a layer multiplies it with weights of 8, that costs time.
  bool may_be_wide(ValueId v) const;
  // The same where the plan leaves it to the samples.
  bool may_widen(ValueId v) const { return may_be_wide(v) && plan_.may_widen[plan_.group[v]]; }

  // Does somebody say that it has 16 bits? They hold no more than what it is made of.
  bool is_decided_wide(ValueId v) const;

  // Of the 8-bit values that v is, or is added up of; 0: not known.
  double step(ValueId v) const { return step_[v]; }
  // Of v's group; null: not known.
  const Range* range(ValueId v) const;

  // Gives the tensors that now have 16 bits: none where v would be no finer. What v is made of stays as it is where its
  // steps are smaller than `finest`; where that is 0, so does what v is a function of.
  std::set<ValueId> widen(ValueId v, double finest = 0);

 private:
  void measure_steps();
  std::int64_t elements(ValueId v) const { return graph_[v].type.shape.elements(); }
  bool has_one_like(const std::vector<ValueId>& ends, ValueId v) const;
  bool refines(ValueId v, std::set<ValueId>& groups);
  bool is_fed_back(ValueId v, const std::set<ValueId>& groups) const;
  bool add_finer(ValueId v, std::set<ValueId>& groups);

  const Graph& graph_;
  const std::map<ValueId, Range>& ranges_;
  QuantisationPlan& plan_;
  const std::vector<std::int32_t> made_by_;
  std::vector<char> fixed_;  // by group: its width is not ours to choose
  std::vector<double> step_;
  double finest_ = 0;
  std::set<ValueId> coarse_;  // groups found to be no finer in 16 bits
};

// Does the plan leave any width to the samples?
bool any_may_widen(const QuantisationPlan& plan);

}  // namespace tosaic
