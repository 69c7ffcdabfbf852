// SPDX-License-Identifier: Apache-2.0
#include "tidy/tidy.h"

#include "ir/states.h"

namespace tosaic {

void tidy(Graph& graph, const TidyOptions& options) {
  const StatesAsTensors states(graph);
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) tidy(body, options);
  drop_dead(graph);
  bool changed = true;
  for (int round = 0; changed && round < 8; ++round) {
    changed = drop_identity(graph);
    changed |= sink_transposes(graph);
    changed |= merge_reshapes(graph);
    changed |= merge_slices(graph);
    changed |= merge_rescales(graph);
    changed |= merge_clamps(graph, options.keep_activations);
    changed |= fold_constant_nodes(graph, options.keep_codes);
    changed |= share_equal(graph);
    drop_dead(graph);
  }
  make_names_unique(graph);
  states.restore(graph);
}

}  // namespace tosaic
