// SPDX-License-Identifier: Apache-2.0
#include "pipeline/in_floats/in_floats.h"

#include <algorithm>

#include "lower/lower.h"
#include "normalise/normalise.h"
#include "normalise/split_weights.h"
#include "ops/operator_name.h"
#include "tidy/tidy.h"

namespace tosaic {

void return_scalars_as_tensors(Graph& graph) {
  for (const Node& node : graph.nodes)
    if (gives_scalar(node)) std::ranges::replace(graph.outputs, node.outputs[0], node.inputs[0]);
  drop_dead(graph);
}

Result<Graph> normal_in_floats(Graph program, std::uint64_t most_weight_bytes, const Sink& sink) {
  TOSAIC_CHECK(acts_on_operands(program));
  TOSAIC_TRY(Graph normal, normalise(std::move(program), {.fold_quantisation = false}, sink));
  TOSAIC_CHECK(split_weights(normal, most_weight_bytes));
  return_scalars_as_tensors(normal);
  TOSAIC_CHECK(runs_as_it_stands(normal));
  return normal;
}

Result<Graph> tosa_in_floats(const Graph& normal) {
  TOSAIC_TRY(Lowered lowered, lower(normal));
  tidy(lowered.graph);
  return std::move(lowered.graph);
}

}  // namespace tosaic
