// SPDX-License-Identifier: Apache-2.0
// A method of a .pte as a report shows it: its instructions as the nodes of a graph, and the memory that they plan.
#pragma once
#include "formats/pte/pte_file.h"
#include "report/contents.h"

namespace tosaic::reporting {

// One node for each instruction.
ShownGraph shown(const pte::Plan& plan);
// `graph`: what `shown` gives of the plan, and its index in the contents.
ShownMemory planned_memory(const pte::Plan& plan, const ShownGraph& graph, std::size_t index);

}  // namespace tosaic::reporting
