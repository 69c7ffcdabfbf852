// SPDX-License-Identifier: Apache-2.0
// An operand needs no quantised values where the functions that read it are flat: beyond 6 tanh is 1, whatever it is
// of. In 16 bits its range ends there, and the knots of tables lie where the functions bend.
#pragma once
#include <map>
#include <set>

#include "quantise/plan.h"

namespace tosaic {

// `ranges`: of groups, as the samples show them. Gives the groups whose ranges end sooner now.
std::set<ValueId> end_where_flat(const Graph& graph, const QuantisationPlan& plan, std::map<ValueId, Range>& ranges);

}  // namespace tosaic
