// SPDX-License-Identifier: Apache-2.0
#include "quantise/float_program.h"

#include "quantise/calibration.h"

namespace tosaic {

FloatProgram float_program(Calibration& calibration) {
  Calibration::Impl& impl = calibration.impl();
  make_names_unique(impl.found.graph);  // before the copy: `quantised` adds tensors, which have to step aside then
  const QuantisationPlan& plan = impl.found.plan;
  FloatProgram program{impl.found.graph, plan.hidden, plan.group};
  for (ValueId v = 0; v < program.group.size(); ++v)
    if (!plan.quantised[v]) program.held[v] = 0, program.group[v] = no_value;
  // What is held in parts saturates where the other part counts.
  for (const auto& [v, range] : impl.found.certain)
    if (range.closed && plan.quantised[v]) program.held[v] = 1;
  for (ValueId v = 0; v < impl.found.cut.size(); ++v)
    if (impl.found.cut[v] && plan.quantised[v]) program.held[v] = 1;
  // What norms of scaled rows are computed with: 1/size of a row, or eps in its units, next to terms that are larger.
  for (ValueId v = impl.found.first_scaled; v < program.held.size(); ++v) program.held[v] = plan.quantised[v];
  impl.states.restore(program.graph);
  return program;
}

}  // namespace tosaic
