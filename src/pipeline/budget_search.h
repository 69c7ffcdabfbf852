// SPDX-License-Identifier: Apache-2.0
// Which sets of tensors are tried in 16 bits to meet a budget, each of them measured.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tosaic/tuning.hpp"

namespace tosaic {

struct MeasuredSet {
  double db = 0, cost = 0;
  std::optional<double> top1 = {};
};
// Of the tensors at these indices of the order, in 16 bits.
using MeasureSet = std::function<Result<MeasuredSet>(const std::vector<std::size_t>& wide)>;

// All that was measured, int8 first, then by cost. The budget says percent itself, not below floats. An accuracy: the
// first 1, 2, 4, ... of the order until it is met, then fewer by halves. A cost: tensor by tensor, in steps that double
// while they fit; one that does not fit alone is left out, and the next is tried. No budget: the first 1, 2, 4, ...,
// all.
Result<std::vector<TunedPoint>> search_budget(const std::vector<TunedTensor>& order, MeasuredSet int8,
                                              const std::optional<Budget>& budget, const MeasureSet& measure);

// The index of the point that meets the budget best: the cheapest that is accurate enough, the most accurate that is
// cheap enough, else what comes nearest. Without a budget 0.
std::size_t choose_point(const std::vector<TunedPoint>& points, const std::optional<Budget>& budget);
bool meets(const TunedPoint& point, const std::optional<Budget>& budget);

}  // namespace tosaic
