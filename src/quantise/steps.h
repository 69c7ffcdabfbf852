// SPDX-License-Identifier: Apache-2.0
// The steps of `quantise` (quantise.cpp is their page) that have no header of their own, and what they give each other.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"
#include "quantise/observe.h"

namespace tosaic {

struct QuantiseOptions;

// Ranges that mathematics gives, whatever the samples show.
struct CertainRange {
  double lowest = 0, highest = 0;
  double most = std::numeric_limits<double>::infinity();  // but no more than so many times what the samples show
  bool closed = false;                                    // and what they show beyond it saturates
};
using CertainRanges = std::map<ValueId, CertainRange>;

// Composites become the operators that their lowering calls, until none is left. `inner[v]` is set
// for values that did not exist before. Those for which `whole` is true stay what they are.
using StaysWhole = std::function<bool(const Graph& graph, const Node& node)>;
// `bounds` receives what their operators say of their results.
using KnownBounds = std::map<ValueId, tosa::Bounds>;
Status expand_composites(Graph& graph, std::vector<char>& inner, KnownBounds& bounds, const StaysWhole& whole = {});
// What is the square of a root is what the root is of.
void squares_of_roots(Graph& graph);
// Roots of sums of two squares, as lengths; `inner` grows with the graph's values.
void roots_of_squares(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options);
// Logarithms of energies, computed on logarithms, in 16 bits; `inner` grows with the graph's values.
void logarithms_of_squares(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options);
// Integers next to floats become floats, and what is between integers alone stays integers; `inner` grows with the
// graph's values.
void whole_numbers(Graph& graph, std::vector<char>& inner);
// Centring and scaling along the last dim as linear maps, where it has one size; `inner` grows with the graph's values.
void linear_forms(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options);
// Layers as sums of two, whose weights have 16 bits together; `inner` grows with the graph's values.
void weights_in_two(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options);
// Functions that their operand's quantised values cannot follow become float again, with a warning. `floating[n]`: node
// n is float already.
void leave_unresolved_float(Graph& graph, const std::vector<char>& floating, const Sink& sink);
// With 16 bits for everything, half a bit goes to values larger than the samples'. Recurrent nets gain 14 to 18 dB on
// inputs that they have not seen, and lose 0.1 dB on those that they have. Not the operands of functions that have no
// value there, as logarithms and arc sines.
constexpr double int16_headroom = 1.5;
std::vector<char> without_headroom(const Graph& graph, const std::vector<Range>& ranges);
}  // namespace tosaic
