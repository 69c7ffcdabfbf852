// SPDX-License-Identifier: Apache-2.0
#include "pipeline/question.h"

#include "lower/over_sizes.h"
#include "ops/tosa_rest.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/methods.h"

namespace tosaic {

Result<AskedProgram> asked_program(const ExportedProgram& program, const CompileOptions& options) {
  AskedProgram asked;
  TOSAIC_TRY(asked.method, only_method(program));
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options.sizes));
  TOSAIC_TRY(asked.graph, at_sizes_for(options.target, asked.method->graph, methods.front().sizes));
  asked.spec = spec_for(asked.graph, options, {});
  if (input_symbols(asked.graph).empty()) return asked;
  asked.varies = true;
  TOSAIC_TRY(const std::vector<Symbol> symbols, bounded(input_symbols(asked.graph)));
  TOSAIC_TRY(const std::vector<Sizes> looked, looked_at(symbols, asked.graph));
  TOSAIC_TRY(asked.graph, specialise(std::move(asked.graph), looked.front()));
  asked.spec.add(tosa::sizes_vary);
  return asked;
}

}  // namespace tosaic
