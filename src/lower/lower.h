// SPDX-License-Identifier: Apache-2.0
// Stage 5, lower: an ATen graph (a region, or a whole program) becomes a TOSA graph, node by node, through the
// operators' own lowerings and, where types are quantised, their rules (ops/rules).
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/rewrite_trace.h"
#include "ops/definitions/tosa_op.h"
#include "ops/inconsistent.h"
#include "ops/trial.h"

namespace tosaic {

struct LowerOptions {
  const tosa::Spec* spec = nullptr;  // what the target takes; nullptr: anything (CPU executor, calibration)
  bool fold = true;                  // evaluate what is constant
  // Per node, true: it runs next to the target, by whatever TOSA can say. Empty: all are the target's.
  std::span<const char> outside = {};
  Rewrites rewrite = {};  // how its rewrites are applied
};

struct Lowered {
  Graph graph;              // tosa.* nodes; inputs and outputs as the ATen graph's
  std::vector<ValueId> of;  // for each ATen value its TOSA value, no_value where there is none
};

Result<Lowered> lower(const Graph& aten, const LowerOptions& options = {});

// "Can the target take this node", and if not the first reason: all of what follows. `used[v]`: somebody reads value
// v; results that nobody reads need no lowering (max_pool2d_with_indices for its maxima alone).
Status can_lower(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec& spec);
// Does a delegate of the target hold such tensors, or does its caller convert them (int64, floats around integers)?
Status within_types(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec& spec);
// One node lowered by itself, memory-free; its results are what the program declares. `spec` (nullptr: anything)
// chooses among an operator's lowerings. Depends on nothing but the call, its types, the constants among its operands
// and which results are read.
Result<Trial> try_lowering(const Graph& aten, const Node& node, const std::vector<char>& used, const tosa::Spec* spec);
// Does every TOSA node that it became hold to the spec?
Status holds_to(const Node& node, const std::vector<char>& used, const Trial& trial, const tosa::Spec& spec);
// Do the node's results have the shapes that the graph declares, as far as a lowering (as floats, for any target)
// tells?
Status shapes_agree(const Graph& aten, const Node& node);
// The clamp that stands before an int64 input is narrowed.
bool saturates_to_i32(const Graph& graph, const Node& node);
std::vector<char> used_values(const Graph& graph);

}  // namespace tosaic
