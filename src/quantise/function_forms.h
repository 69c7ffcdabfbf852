// SPDX-License-Identifier: Apache-2.0
// How functions of 16-bit quantised values are computed. A table has lines between its 513 knots: a function with knees
// and jumps between these, or one that bends in a small part of a wide range, is elsewhere. Next to 0 its knots may be
// finer (ops/finer_table.h), or the operator's own lowering is computed in integers (ops/rules/in_integers.h). Both
// cost commands. So each form is tried on the quantised values of the operand, which the samples have counted, and
// taken where it is much nearer to the function.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "quantise/plan.h"

namespace tosaic {

struct FunctionForm {
  std::size_t node;
  std::int64_t finer = 0;  // knots next to 0, so many times closer to each other
  bool integers = false;
};
void set_form(Node& node, const FunctionForm& form);
// As the node that it was before has it.
void set_form_of(const Node& was, Node& node);

// Of nodes that need another form than a table, on the ranges of groups as the samples show them and the histograms of
// those that have one.
std::vector<FunctionForm> function_forms(const Graph& graph, const std::map<ValueId, Range>& ranges,
                                         const std::map<ValueId, Histogram>& histograms, const QuantisationPlan& plan,
                                         const QuantiseOptions& options);

// In a program that others quantised, whose conversions are folded: as if half of the elements lay next to 0, where a
// table with knots at each of them has what a quarter of them needs.
void mark_function_forms(Graph& graph);

}  // namespace tosaic
