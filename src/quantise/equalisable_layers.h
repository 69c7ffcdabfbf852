// SPDX-License-Identifier: Apache-2.0
// Which channels of a program may be scaled at no cost: what makes a channel has a weight of its own for it, and all
// that read it undo the factor by theirs. Private to quantise/.
#pragma once
#include <vector>

#include "quantise/channel_factors.h"
#include "quantise/plan.h"
#include "quantise/quantise.h"
#include "quantise/window.h"

namespace tosaic {

// A convolution or linear layer, whose weight nobody else reads.
struct EqualisableLayer {
  const PlannedWeight* planned = nullptr;
  Window window;
  ValueId weight = no_value, bias = no_value;  // bias: no_value where it has none
  std::vector<Factors::Id> made, read;         // per channel of the result, of the operand; empty: the operand's are 1
};

struct EqualisableProgram {
  Factors factors;
  FactorsOfValues of;  // values of the program
  std::vector<EqualisableLayer> layers;
  bool varies(ValueId v) const;  // may any of its channels be scaled?
  bool any() const;
};

// `plan`: of the same graph. It must outlive the result.
EqualisableProgram find_equalisable(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options);

}  // namespace tosaic
