// SPDX-License-Identifier: Apache-2.0
// Steps that follow each other and compute each row of their results from the same row of what the ones before have
// made (softmax and layer norm of integers are chains and reductions) become one step, which takes a block of rows
// through all of them: what they hand to each other stays in the second-level cache, and needs memory for a block
// alone.
#pragma once
#include "cpu/step.h"

namespace tosaic::cpu {

// `steps`: in the order in which they run.
void group_rows(const Planning& planning, std::vector<Step>& steps);

}  // namespace tosaic::cpu
