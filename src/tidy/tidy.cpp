// SPDX-License-Identifier: Apache-2.0
#include "tidy/tidy.h"

#include "ir/states.h"

namespace tosaic {

void tidy(Graph& graph, const TidyOptions& options) {
  const Rewrites& rewrite = options.rewrite;
  const StatesAsTensors states(graph);
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) tidy(body, options);
  rewrite("drop_dead", graph, drop_dead);
  bool changed = true;
  for (int round = 0; changed && round < 8; ++round) {
    changed = rewrite("drop_identity", graph, drop_identity);
    changed |= rewrite("sink_transposes", graph, sink_transposes);
    changed |= rewrite("merge_reshapes", graph, merge_reshapes);
    changed |= rewrite("merge_slices", graph, merge_slices);
    changed |= rewrite("fold_pads", graph, fold_pads);
    changed |= rewrite("merge_rescales", graph, merge_rescales);
    changed |= rewrite("merge_clamps", graph, merge_clamps, options.keep_activations);
    changed |= rewrite("fold_constant_nodes", graph, fold_constant_nodes, options.keep_quantised_weights);
    changed |= rewrite("share_equal", graph, share_equal);
    rewrite("drop_dead", graph, drop_dead);
  }
  rewrite("make_names_unique", graph, make_names_unique);
  states.restore(graph);
}

}  // namespace tosaic
