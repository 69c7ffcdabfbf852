// SPDX-License-Identifier: Apache-2.0
// Questions about a program that is not compiled: what they are about, and its quantisation plan. They go the line's
// own steps (steps.h) with another source of types, so that they answer about the program that compile makes.
#pragma once
#include "pipeline/options.h"
#include "quantise/plan.h"

namespace tosaic {

// A method at numbers, for who answers about one graph.
struct AskedMethod {
  const Method* method = nullptr;
  Graph graph;      // at the first sizes that were chosen; what nobody chose, and the target lets vary, at its bounds
  tosa::Spec spec;  // of the target, with what the program's floats need
  bool varies = false;
};
// Errors: option.value, model.size, model.dynamic-shape, model.methods, and lower.sizes where no size is one of the
// program's.
Result<std::vector<AskedMethod>> asked_methods(const ExportedProgram& program, const CompileOptions& options);
// Of a program that should have one.
Result<AskedMethod> asked_method(const ExportedProgram& program, const CompileOptions& options);

struct PlannedMethod {
  const Method* method = nullptr;
  Graph normal;  // with whole composites
  Expanded program;
  QuantisationPlan plan;
};
// Not `in_pieces`: composites stay whole, and float. Errors: those of normalise, plan.*.
Result<PlannedMethod> plan_method(AskedMethod asked, const CompileOptions& options, bool in_pieces);

}  // namespace tosaic
