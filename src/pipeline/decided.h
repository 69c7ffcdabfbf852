// SPDX-License-Identifier: Apache-2.0
// Decisions about precision among the reasons for what a target does not take.
#pragma once
#include <vector>

#include "partition/partition.h"
#include "quantise/overrides.h"

namespace tosaic {

// What an integer target leaves outside because somebody wants it to be float says so.
void say_decided(const Graph& graph, const Deciding& decided, const tosa::Spec& spec,
                 std::vector<Placement>& placements);

}  // namespace tosaic
