// SPDX-License-Identifier: Apache-2.0
#include "pipeline/question.h"

#include "lower/over_sizes.h"
#include "ops/tosa_rest.h"
#include "partition/extensions.h"
#include "pipeline/methods.h"

namespace tosaic {

Result<Graph> at_sizes_for(const Target& target, const Graph& graph, const std::vector<std::string>& choices) {
  return target.varies ? with_chosen_sizes(graph, choices) : at_chosen_sizes(graph, choices);
}

FormFor form_for(const CompileOptions& options, const tosa::Spec& spec) {
  const bool codes = options.target.keeps_codes && !options.in_integers();
  return {.spec = spec,
          .integer = options.in_integers(),
          .keeps_codes = codes,
          .coded = codes ? options.coded : CodedWeights{},
          .all_inside = options.single_delegate || options.require_full_delegation};
}

Result<AskedProgram> asked_program(const ExportedProgram& program, const CompileOptions& options) {
  AskedProgram asked;
  TOSAIC_TRY(asked.method, only_method(program));
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options.sizes));
  TOSAIC_TRY(asked.graph, at_sizes_for(options.target, asked.method->graph, methods.front().sizes));
  asked.spec = options.target.spec;
  if (!options.target.spec_given && !options.in_integers())
    for (const NeededExtension& needed : needed_extensions(asked.graph, asked.spec)) asked.spec.add(needed.feature);
  if (input_symbols(asked.graph).empty()) return asked;
  asked.varies = true;
  TOSAIC_TRY(const std::vector<Symbol> symbols, bounded(input_symbols(asked.graph)));
  TOSAIC_TRY(const std::vector<Sizes> looked, looked_at(symbols, asked.graph));
  TOSAIC_TRY(asked.graph, specialise(std::move(asked.graph), looked.front()));
  asked.spec.add(tosa::sizes_vary);
  return asked;
}

}  // namespace tosaic
