// SPDX-License-Identifier: Apache-2.0
#include "pipeline/normal_form.h"

#include "ir/type.h"
#include "normalise/split_weights.h"
#include "ops/definitions/rest.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/steps.h"
#include "quantise/function_forms.h"
#include "quantise/quantised_states.h"
#include "quantise/weights_on_samples.h"

namespace tosaic {

double most_unlike_gains(bool integer, const QuantiseOptions& quantise, const WeightQuantisation& weights) {
  if (!integer) return weights.bits == 0 ? INFINITY : 1;
  return quantise.scheme == Scheme::int8 && quantise.per_channel && !quantise.four_bits ? 64 : 1;
}

Result<Graph> normal_form(Graph graph, const FormFor& target, const Sink& sink, std::vector<std::string>* narrowed) {
  // What a program's own conversions made integers stays so wherever the target has any.
  const bool has_integers = target.spec.has(tosa::Feature::pro_int);
  TOSAIC_TRY(graph, normalise(std::move(graph),
                              {.narrow_loops = target.spec.has(tosa::Feature::controlflow),
                               .all_inside = target.all_inside || target.spec.has(tosa::sizes_vary),
                               .fold_quantisation = target.integer || has_integers,
                               .keep_quantised_weights = target.keeps_quantised_weights,
                               .narrowed = narrowed,
                               .fold_as_pytorch = target.fold_as_pytorch,
                               .most_unlike_gains = target.most_unlike_gains,
                               .rewrite = target.rewrite},
                              sink));
  if (target.weight_quantisation.bits != 0 && !target.integer && !is_quantised(graph))
    TOSAIC_CHECK(target.rewrite("quantise_weights", graph, quantise_weights, target.weight_quantisation, sink));
  if (target.quantises_states && !target.integer && !is_quantised(graph))
    TOSAIC_CHECK(target.rewrite("quantise_states", graph, quantise_states, sink));
  TOSAIC_CHECK(target.rewrite("split_weights", graph, split_weights, target.spec.most_weight_bytes(target.integer)));
  return graph;
}

Result<Normal> normalise_program(Graph program, const Context& c) {
  TOSAIC_CHECK(c.note("read", program));
  Status found = acts_on_operands(program);
  Normal normal;
  normal.stored = fitting(program, c.method->sample_inputs);
  FormFor form = form_for(c.options, c.target.spec);
  form.rewrite = c.rewrites("normalise");
  form.weight_quantisation.rounded = [&c](const Value& weight) { return c.weights->find(weight); };
  TOSAIC_TRY(normal.graph, normal_form(std::move(program), form, c.callbacks.sink, &normal.narrowed));
  if (found.ok()) found = runs_as_it_stands(normal.graph);
  if (!found.ok() && c.request.pack) return std::move(found).error();
  if (!found.ok()) {  // what nobody can write may still be asked about
    found.error().severity = Severity::warning;
    c.say(std::move(found.error()));
  }
  normal.by_pt2e = is_quantised(normal.graph);
  if (normal.by_pt2e) mark_function_forms(normal.graph);
  const bool integers = c.options.in_integers() || normal.by_pt2e;
  if (!integers && c.options.weight_quantisation.bits != 0 && !c.target.keeps_quantised_weights())
    return no_quantised_weights(c.target);
  TOSAIC_CHECK(c.end("normalise", normal.graph));
  return normal;
}

}  // namespace tosaic
