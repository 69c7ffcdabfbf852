// SPDX-License-Identifier: Apache-2.0
// The quantisation plan: what becomes integers and of which kind, who shares a scale with whom, from the program and
// the options alone. `quantise` is plan -> observe -> apply; what has no data (partition/supports.h) applies a plan
// with ranges of its own.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quantise/pieces.h"
#include "quantise/quantise.h"

namespace tosaic {

// A program in the form that is quantised: composites in pieces, norms as linear maps.
struct Expanded {
  Graph graph;
  std::vector<char> inner;  // per value: did not exist before
};
Result<Expanded> expanded(Graph graph);

// A constant of an accumulating call that becomes symmetric codes, whichever operand it is; a bias stays float, the
// lowering knows its scale. Weights have 8 bits beside 8 and 16; the matrices of a product have as many as each other.
struct PlannedWeight {
  std::size_t node, operand;
  int axis;     // one scale per index of this dim; -1: one for all
  bool matrix;  // has the bits of what it is multiplied with
  bool operator==(const PlannedWeight&) const = default;
};

// All vectors but the last two have one element per value of the expanded graph.
struct QuantisationPlan {
  std::vector<char> coded;      // becomes integers
  std::vector<char> wide;       // of 16 bits, symmetric; else of 8, affine
  std::vector<char> may_widen;  // where the samples ask for it
  std::vector<char> hidden;     // its own range does not count: a single reader clamps it anyway
  std::vector<ValueId> group;   // values of one group share one scale; the group is named after one of them
  std::vector<std::pair<ValueId, ValueId>> chosen_from;  // (constant, the tensor of its elements): an embedding
  std::vector<PlannedWeight> weights;
  bool operator==(const QuantisationPlan&) const = default;
};
// `pieces`: what the samples say of concatenations; default: nothing.
QuantisationPlan plan_quantisation(const Expanded& program, const QuantiseOptions& options, const Pieces& pieces = {});

// The plan as text, which reads back: a line per node with its rule, per tensor, and per weight.
//   aten.conv2d.default %conv accumulate
//   %x i8 affine
//   %relu i8 affine as %x
//   %exp i16 symmetric
//   %odd float
//   %w i8 symmetric per dim 0 in aten.conv2d.default %conv
std::string print(const QuantisationPlan& plan, const Graph& graph);
// Of the same graph. Errors: plan.syntax, plan.unknown-tensor, plan.incomplete, plan.not-this-program.
Result<QuantisationPlan> parse_plan(std::string_view text, const Expanded& program);

// Types and scales from a range per value, symmetric ones with room above it (int16_headroom) but where `exact` is set
// for the value's group.
void give_types(Graph& graph, const QuantisationPlan& plan, std::span<const Range> ranges,
                const std::vector<char>& exact);
// Codes in the place of planned weights, where what they are multiplied with and the result have codes as well.
using WeightCodes = Tensor (*)(const Tensor& weight, int axis, DType codes);
void give_weights(Graph& graph, const QuantisationPlan& plan, WeightCodes codes);

}  // namespace tosaic
