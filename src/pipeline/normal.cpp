// SPDX-License-Identifier: Apache-2.0
#include "normalise/normalise.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/steps.h"

namespace tosaic {

Result<Normal> normalise_program(Graph program, const Context& c) {
  TOSAIC_CHECK(c.note("read", program));
  Status found = acts_on_operands(program);
  Normal normal;
  normal.stored = fitting(program, c.method->sample_inputs);
  TOSAIC_TRY(normal.graph,
             normal_form(std::move(program), form_for(c.options, c.target.spec), c.callbacks.sink, &normal.narrowed));
  if (found.ok()) found = runs_as_it_stands(normal.graph);
  if (!found.ok() && c.options.pack) return std::move(found).error();
  if (!found.ok()) {  // what nobody can write may still be asked about
    found.error().severity = Severity::warning;
    c.say(std::move(found.error()));
  }
  normal.by_pt2e = is_quantised(normal.graph);
  const bool integers = c.options.in_integers() || normal.by_pt2e;
  if (!integers && c.options.coded.bits != 0 && !c.target.keeps_codes) return no_codes(c.target);
  TOSAIC_CHECK(c.end("normalise", normal.graph));
  return normal;
}

}  // namespace tosaic
