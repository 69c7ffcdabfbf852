// SPDX-License-Identifier: Apache-2.0
#include "quantise/weights_on_samples.h"

#include "pipeline/samples.h"
#include "pipeline/steps.h"
#include "quantise/finite_samples.h"
#include "quantise/uniform_samples.h"

namespace tosaic {

Status round_weights(const Graph& program, const Context& c) {
  if (!c.given || !c.request.pack || !c.options.rounds_weights_of_floats()) return {};
  FormFor form = form_for(c.options, c.target.spec);
  const WeightQuantisation how = std::exchange(form.weight_quantisation, {});
  std::size_t count = 0, done = 0;
  const WeightsOnSamples::Running running{.threads = c.options.quantise.threads,
                                          .ran_one =
                                              [&] {
                                                ++done;
                                                if (c.callbacks.progress)
                                                  c.callbacks.progress("calibrate", done, count);
                                              },
                                          .cancelled = c.callbacks.cancelled};
  const auto look = [&](Graph normal, const Samples& samples) -> Status {
    if (is_quantised(normal)) return {};
    TOSAIC_CHECK(finite_samples(normal, samples, c.options.quantise.threads));
    return c.weights->see(std::move(normal), samples, count, how, running);
  };
  Samples samples;
  if (!input_symbols(*c.exported).empty()) { TOSAIC_TRY(samples, c.given(*c.exported)); }
  count = samples.size();
  say_uniform(*c.exported, samples, c.callbacks.sink);
  TOSAIC_TRY(const SamplesBySizes all, by_sizes(*c.exported, std::move(samples)));
  for (const auto& [sizes, its] : all) {
    TOSAIC_TRY(Graph at, specialise(*c.exported, sizes));
    TOSAIC_TRY(Graph normal, normal_form(std::move(at), form));
    TOSAIC_CHECK(look(std::move(normal), its));
  }
  if (all.empty() && input_symbols(program).empty()) {  // methods that differ in sizes alone have each their own
    TOSAIC_TRY(Graph normal, normal_form(program, form));
    TOSAIC_TRY(samples, c.given(normal));
    count = samples.size();
    say_uniform(normal, samples, c.callbacks.sink);
    TOSAIC_CHECK(look(std::move(normal), samples));
  }
  c.weights->round(how, c.options.quantise.threads);
  return c.not_cancelled();
}

}  // namespace tosaic
