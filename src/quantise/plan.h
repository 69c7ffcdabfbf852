// SPDX-License-Identifier: Apache-2.0
// The quantisation plan: what becomes integers and of which kind, who shares a scale with whom, from the program and
// the options alone. `quantise` is plan -> observe -> apply; what has no data (pipeline/supports.h) applies a plan
// with ranges of its own.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "quantise/overrides.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"
#include "quantise/unlike_ranges.h"

namespace tosaic {

// A program in the form that is quantised: composites decomposed, norms as linear maps.
struct Expanded {
  Graph graph;
  std::vector<char> inner;          // per value: did not exist before
  KnownBounds bounds = {};          // of results of composites
  CertainRanges certain = {};       // which samples can only widen
  ValueId first_scaled = no_value;  // values from here on were written for norms, and are nothing to warn of
};
// Composites that are to be float stay whole.
Result<Expanded> expanded(Graph graph, const QuantiseOptions& options = {});
Result<StaysWhole> stays_whole(const QuantiseOptions& options);
// The first step of that, the same for every way to quantise a program: composites as calls, and integers next to
// floats as floats. `inner` and `bounds` as in Expanded.
Status expand_calls(Graph& graph, std::vector<char>& inner, KnownBounds& bounds, const QuantiseOptions& options,
                    const Rewrites& rewrite = {});

// A constant of an accumulating call that becomes symmetric quantised values, whichever operand it is; a bias stays
// float, the lowering knows its scale. Weights have 8 bits or 4 with activations of 8 and 16; the matrices of a product
// have as many as each other.
struct PlannedWeight {
  std::size_t node, operand;
  int axis;                // one scale per index of this dim; -1: one for all
  bool matrix;             // has the bits of what it is multiplied with
  bool four_bits = false;  // of a weight: quantised values from -7 to 7
  bool operator==(const PlannedWeight&) const = default;
};

// A constant in quantised values, of which a program has as many as it has such keys: their axis and dtype.
using WeightKey = std::tuple<ValueId, int, DType>;

// An operand in quantised values of other width than the call is to compute with: a rescaled copy stands between.
struct WidthChange {
  std::size_t node, operand;
  bool wide;  // the copy
  bool operator==(const WidthChange&) const = default;
};

// What is decided about an expanded program, whatever the options and the samples say. Empty: nothing.
struct Decisions {
  std::vector<Form> of_node;        // per node
  std::vector<Form> of_value;       // per value: its width
  std::vector<const Override*> by;  // per node: who decided; null: a whole plan, or nobody
  struct WeightForm {
    int axis;
    bool four_bits;
  };
  std::map<std::pair<ValueId, std::size_t>, WeightForm> weights;  // of (the call's first result, operand)
  bool any() const { return !of_node.empty(); }
};

// Vectors have one element per value of the expanded graph where nothing else is said.
struct QuantisationPlan {
  std::vector<char> quantised;  // becomes integers
  std::vector<char> wide;       // of 16 bits, symmetric; else of 8, affine
  std::vector<char> may_widen;  // where the samples ask for it
  std::vector<char> hidden;    // its own range does not count: a single reader clamps it anyway, or only parts are read
  std::vector<ValueId> group;  // values of one group share one scale; the group is named after one of them
  std::vector<std::pair<ValueId, ValueId>> chosen_from;  // (constant, the tensor of its elements): an embedding
  std::vector<PlannedWeight> weights;
  std::vector<tosa::Bounds> bounds;        // known without samples, which can only narrow them
  std::vector<Form> forms;                 // per node: what was decided; empty: nothing was
  std::vector<Form> widths;                // per value, what was decided or follows from that; empty: nothing was
  std::vector<WidthChange> width_changes;  // between forms
  bool range_counts(ValueId v) const { return quantised[v] && !hidden[v]; }  // in that of its group
  bool floating(std::size_t node) const { return node < forms.size() && forms[node] == Form::floating; }
  bool operator==(const QuantisationPlan&) const = default;
};
// `unlike_ranges`: what the samples say of concatenations; default: nothing.
QuantisationPlan plan_quantisation(const Expanded& program, const QuantiseOptions& options,
                                   const UnlikeRanges& unlike_ranges = {}, const Decisions& decisions = {});

// There is nothing to plan where PT2E did: plan.already-quantised.
Diagnostic already_quantised();

// Has the call an integer form, and floats to have quantised values for?
bool computes_quantised(const Graph& graph, const Node& node);
// Does the call hold its input between bounds and nothing else?
bool clamps(const Graph& graph, const Node& node);
// Bounds of every value that follow from the operators.
std::vector<tosa::Bounds> known_bounds(const Expanded& program);

// What the request says of this program. Errors: plan.names-nothing, those of parse_plan, and plan.impossible for lines
// that contradict what follows from others.
Result<Decisions> decide(const Expanded& program, const PlanRequest& request, const QuantiseOptions& options);
// Overrides that no call follows: their nodes were folded away, have nothing to quantise, or later ones decide.
std::vector<const Override*> without_effect(const Expanded& program, const PlanRequest& request,
                                            const Decisions& decisions);
// What is decided about what became of the program meanwhile: values below `kept` are those that they were.
struct CarriedOver {
  Decisions decisions;
  std::vector<Place> lost;  // lines of a whole plan, of calls and tensors that are no more
};
CarriedOver carried_over(const Decisions& decisions, const PlanRequest& request, const Graph& before, const Graph& now,
                         ValueId kept);
// Each decision tried on the target, on nominal scales. Error: plan.refused, with the target's reason.
Status check_decisions(const Expanded& program, const Decisions& decisions, const QuantiseOptions& options,
                       const tosa::Spec& spec);
// The plan without samples, as the request says it: decided, tried, planned.
Result<QuantisationPlan> plan_as_asked(const Expanded& program, const QuantiseOptions& options,
                                       const UnlikeRanges& unlike_ranges = {});

// The plan as text, which reads back: a line per node with its rule and what was decided, per tensor, and per weight.
//   aten.conv2d.default %conv accumulate
//   %x i8 affine
//   %relu i8 affine as %x
//   %exp i16 symmetric
//   %sigmoid i8 affine in [0, 1]
//   %odd float
//   aten.linear.default %head accumulate int16x8
//   aten.relu.default %relu transparent float
//   %w i8 symmetric per dim 0 in aten.conv2d.default %conv
//   %w i4 symmetric per dim 0 in aten.linear.default %head
// `with_places`: behind two blanks and a #, each call's module and line.
std::string print(const QuantisationPlan& plan, const Graph& graph, bool with_places = false);
// What its lines call a tensor and a call: "%x", "aten.conv2d.default %conv".
std::string name_in_plan(const Graph& graph, ValueId v);
std::string name_in_plan(const Graph& graph, const Node& node);
// The same as members of a JSON object: "calls", "tensors" and "weights".
std::string print_json(const QuantisationPlan& plan, const Graph& graph);
// Members of a JSON object for those who put the plan into a program of PyTorch's: "calls" with operands and results,
// those of taken-apart composites with what rebuilds them, and "values". `normal`: the graph before it was expanded,
// `exported`: as it was read.
std::string print_annotation(const QuantisationPlan& plan, const Expanded& program, const Graph& normal,
                             const Graph& exported);
// Of the same graph. Errors: plan.syntax, plan.unknown-tensor, plan.incomplete, plan.not-this-program.
Result<QuantisationPlan> parse_plan(std::string_view text, const Expanded& program, const std::string& source = "plan");

// Types and scales from a range per value, symmetric ones with room above it (int16_headroom) but where `exact` is set
// for the value's group.
void give_types(Graph& graph, const QuantisationPlan& plan, std::span<const Range> ranges,
                const std::vector<char>& exact);
// Quantised values in place of planned weights, where what they are multiplied with and the result have quantised
// values as well.
using QuantiseWeight = std::function<Tensor(ValueId v, const Tensor& weight, int axis, DType dtype)>;
void give_weights(Graph& graph, const QuantisationPlan& plan, const QuantiseWeight& quantise_one);
// After those: calls that are decided to be float give floats, and their quantised readers a quantised copy; copies at
// the boundaries, of the range that `narrow` has for the value where they have 8 bits.
void insert_width_changes(Graph& graph, const QuantisationPlan& plan, const std::map<ValueId, Range>& narrow);
// The program with the types that `quantise` would give, on the scales of tensors between -1 and 1. Values keep their
// numbers.
Graph on_nominal_scales(Graph graph, const QuantisationPlan& plan);

}  // namespace tosaic
