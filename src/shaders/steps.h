// SPDX-License-Identifier: Apache-2.0
// Which nodes are computed together, by which dispatches, and what becomes no dispatch at all.
#pragma once
#include <vector>

#include "plan/memory.h"
#include "plan/uses.h"
#include "plan/views.h"
#include "shaders/kernel.h"

namespace tosaic::shaders {

struct Step {
  std::vector<std::uint32_t> nodes;  // ascending; the step stands where the last one stood
  std::vector<ValueId> reads, writes;
  std::vector<Made> dispatches;
  std::uint64_t scratch_bytes = 0;
};

struct Steps {
  std::vector<Step> list;
  std::vector<plan::Alias> aliases;
};

using plan::is_view;
// The last view of a value, where each alone reads the one before: the same elements in the same order.
ValueId skip_views(const plan::Uses& uses, ValueId v);

// Errors: vulkan.no-kernel, with the node's location.
Result<Steps> steps_of(const Work& work);

}  // namespace tosaic::shaders
