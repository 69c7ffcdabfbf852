// SPDX-License-Identifier: Apache-2.0
#include "pipeline/question.h"

#include "ir/states.h"
#include "lower/over_sizes.h"
#include "ops/definitions/rest.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/methods.h"
#include "pipeline/settle.h"
#include "pipeline/steps.h"

namespace tosaic {
namespace {

Result<AskedMethod> at_numbers(const SizedMethod& at, const CompileOptions& options) {
  AskedMethod asked{at.method, {}, {}};
  TOSAIC_TRY(asked.graph, at_sizes_for(options.target, at.method->graph, at.sizes));
  asked.spec = spec_for(asked.graph, options, {});
  if (input_symbols(asked.graph).empty()) return asked;
  asked.varies = true;
  TOSAIC_TRY(const std::vector<Symbol> symbols, bounded(input_symbols(asked.graph)));
  TOSAIC_TRY(const std::vector<Sizes> looked, looked_at(symbols, asked.graph));
  TOSAIC_TRY(asked.graph, specialise(std::move(asked.graph), looked.front()));
  asked.spec.add(tosa::sizes_vary);
  return asked;
}

}  // namespace

Result<std::vector<AskedMethod>> asked_methods(const ExportedProgram& program, const CompileOptions& options) {
  if (program.methods.empty()) return only_method(program).error();
  TOSAIC_CHECK(answerable(options));
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options));
  std::vector<AskedMethod> all;
  for (const SizedMethod& method : methods) {
    if (!all.empty() && all.back().method == method.method) continue;  // at its other sizes
    TOSAIC_TRY(AskedMethod asked, at_numbers(method, options));
    all.push_back(std::move(asked));
  }
  return all;
}

Result<AskedMethod> asked_method(const ExportedProgram& program, const CompileOptions& options) {
  TOSAIC_CHECK(only_method(program));
  TOSAIC_TRY(std::vector<AskedMethod> all, asked_methods(program, options));
  return std::move(all.front());
}

Result<PlannedMethod> plan_method(AskedMethod asked, const CompileOptions& options, bool in_pieces) {
  Context c(*asked.method, options, {}, {}, Request::question());
  c.options.target.spec = c.target.spec = asked.spec;
  TOSAIC_TRY(Normal normal, normalise_program(std::move(asked.graph), c));
  if (normal.by_pt2e) return already_quantised();
  Graph& graph = normal.graph;
  widen_half_precision(graph);
  const QuantiseOptions how = how_to_quantise(c.options, *c.exported);
  const StatesAsTensors states(graph);
  PlannedMethod planned{asked.method, graph, {graph, std::vector<char>(graph.values.size(), 0)}, {}};
  if (in_pieces) { TOSAIC_TRY(planned.program, expanded(std::move(graph), how)); }
  TOSAIC_TRY(planned.plan, plan_as_asked(planned.program, how));
  return planned;
}

}  // namespace tosaic
