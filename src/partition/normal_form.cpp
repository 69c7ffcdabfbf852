// SPDX-License-Identifier: Apache-2.0
#include "partition/normal_form.h"

#include "ir/type.h"
#include "normalise/split_weights.h"
#include "ops/tosa_rest.h"
#include "quantise/quantise.h"

namespace tosaic {

Result<Graph> normal_form(Graph graph, const FormFor& target, const Sink& sink, std::vector<std::string>* narrowed) {
  // What a program's own conversions made integers stays so wherever the target has any.
  const bool has_integers = target.spec.has(tosa::Feature::pro_int);
  TOSAIC_TRY(graph, normalise(std::move(graph),
                              {.narrow_loops = target.spec.has(tosa::Feature::controlflow),
                               .all_inside = target.all_inside || target.spec.has(tosa::sizes_vary),
                               .fold_quantisation = target.integer || has_integers,
                               .keep_codes = target.keeps_codes,
                               .narrowed = narrowed},
                              sink));
  if (target.coded.bits != 0 && !target.integer && !is_quantised(graph))
    TOSAIC_CHECK(code_weights(graph, target.coded, sink));
  split_weights(graph, target.spec.most_weight_bytes(target.integer));
  return graph;
}

}  // namespace tosaic
