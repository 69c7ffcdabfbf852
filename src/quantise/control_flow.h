// SPDX-License-Identifier: Apache-2.0
// Branches and loops for targets that have no floats: quantised values cross the boundaries of their bodies.
#pragma once
#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

// After `insert_boundaries`, which leaves floats there. What meets at a boundary (what is given there and what is read)
// keeps its scale where that is one and the same; otherwise it is int32 of steps so fine that nothing is rounded: what
// bodies compute is what they would compute between floats. A node whose bodies need floats for more than that (a
// tolerance, a counter, what says whether a loop goes on), or that the target refuses quantised, too, stays as it is,
// with the reason in its attribute "floats".
void quantise_control_flow(Graph& graph, const tosa::Spec& spec);
// Is it for such a target?
inline bool quantises_control_flow(const tosa::Spec& spec) {
  return spec.has(tosa::Feature::controlflow) && !spec.has(tosa::Feature::pro_fp);
}

}  // namespace tosaic
