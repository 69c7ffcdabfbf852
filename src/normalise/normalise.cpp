// SPDX-License-Identifier: Apache-2.0
#include "normalise/normalise.h"

#include <fmt/format.h>

namespace tosaic {

// Constructs that the IR holds but no stage can compile yet: said by name, at the user's line.
static Status supported(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (!node.regions.empty())
      return located(error("model.control-flow", fmt::format("{} cannot be compiled yet", node.op))
                         .hint("export the model with the branch or the loop resolved"),
                     node.loc);
  for (const State& state : graph.states)
    return error("model.mutable-state",
                 fmt::format("buffer '{}' is changed by the model, which cannot be compiled yet", state.name))
        .hint("pass the buffer as an input and return its new content as an output");
  for (ValueId v : graph.inputs)
    if (!graph[v].type.shape.is_static())
      return error("model.dynamic-shape", fmt::format("input '{}' has the shape {}, which cannot be compiled yet",
                                                      graph[v].name, to_string(graph[v].type.shape)))
          .hint("export the model without dynamic_shapes, at the size that you deploy");
  return {};
}

Result<Graph> normalise(Graph graph, const NormaliseOptions& options, const Sink& sink) {
  TOSAIC_CHECK(supported(graph));
  TOSAIC_CHECK(functionalise(graph));
  drop_identities(graph);
  TOSAIC_CHECK(narrow_integers(graph, sink, options.narrowed));
  drop_identities(graph);  // a conversion to 32 bits of what has 32 bits now
  fold_constants(graph);
  recognise_linear(graph);
  fold_batch_norm(graph);
  if (options.fold_quantisation) TOSAIC_CHECK(fold_quantisation(graph));
  drop_dead(graph);
  return graph;
}

}  // namespace tosaic
