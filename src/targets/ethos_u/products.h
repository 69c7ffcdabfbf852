// SPDX-License-Identifier: Apache-2.0
// What each Ethos-U product takes of TOSA, as rules on TOSA nodes. The rules are what Vela 5.1.0 was measured to
// compile for the NPU (docs/developer/ethos-u.md); a refused node carries the rule's label and the two values that
// disagree.
#pragma once
#include "ir/rewrite_trace.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::ethos_u {

const tosa::Product& u55();
const tosa::Product& u65();
const tosa::Product& u85();

// Rewrites after which Vela makes fewer or cheaper commands (docs/benchmarks/ethos-u.md tells what was measured).
void shape_for_u55(Graph& graph, const Rewrites& rewrite = {});
void shape_for_small_u55(Graph& graph, const Rewrites& rewrite = {});
void shape_for_u65(Graph& graph, const Rewrites& rewrite = {});
void shape_for_u85(Graph& graph, const Rewrites& rewrite = {});
void shape_for_small_u85(Graph& graph, const Rewrites& rewrite = {});  // up to 256 MACs

}  // namespace tosaic::ethos_u
