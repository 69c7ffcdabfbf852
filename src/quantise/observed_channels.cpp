// SPDX-License-Identifier: Apache-2.0
#include "quantise/observed_channels.h"

#include <utility>

#include "quantise/observable.h"
#include "quantise/observed_program.h"

namespace tosaic {

Result<ObservedChannels> observe_channels(const Graph& graph, const std::map<ValueId, int>& dim_of,
                                          const std::vector<std::vector<Tensor>>& samples, std::size_t most,
                                          const QuantiseOptions& options) {
  std::vector<char> unseen, wanted(graph.values.size());
  TOSAIC_TRY(Lowered lowered, lower_observable(graph, unseen, {}));
  for (const auto& [v, dim] : dim_of) wanted[v] = !unseen[v];
  TOSAIC_TRY(ObservedProgram observed, compile_observed(graph, std::move(lowered), wanted, options.threads));
  ObservedChannels found;
  const cpu::Observer observer = [&](ValueId seen, const TensorView& content, ThreadPool& pool) {
    const auto watchers = observed.watchers.find(seen);
    if (watchers == observed.watchers.end() || content.type.dtype != DType::f32) return;
    for (const auto& [v, moves] : watchers->second)
      found[v].see(Look(content.as<float>(), content.type, moves).placed(), dim_of.at(v), pool);
  };
  const std::size_t step = (samples.size() + most - 1) / most;
  for (std::size_t s = 0; s < samples.size(); s += step) {
    if (options.cancelled && options.cancelled()) return error("compile.cancelled", "the compilation was cancelled");
    auto run = observed.program.run(samples[s], &observer);
    if (!run.ok()) return run.error();
  }
  return found;
}

}  // namespace tosaic
