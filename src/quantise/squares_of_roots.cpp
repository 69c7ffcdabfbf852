// SPDX-License-Identifier: Apache-2.0
// Squares of roots, as power spectra have that are made of magnitudes (abs() ** 2 of complex numbers): a root and a
// square less, each of which rounds. The square has what the root had no room for.
#include <algorithm>
#include <map>

#include "ir/rewriter.h"
#include "quantise/powers.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {

void squares_of_roots(Graph& graph) {
  if (!may_have_roots(graph)) return;
  std::map<ValueId, ValueId> of_root;  // what each root is of
  const Calls calls(graph);
  Rewriter out(graph);
  out.each([&](Node& node) {
    const auto power = exponent_of(graph, calls, node);
    if (power && node.inputs[0] != no_value) {
      const auto root = of_root.find(node.inputs[0]);
      const bool seen = std::ranges::find(graph.outputs, node.outputs[0]) != graph.outputs.end();
      if (*power == 2 && root != of_root.end() && !seen) return out.replace(node.outputs[0], root->second);
      if (*power == 0.5) of_root.emplace(node.outputs[0], node.inputs[0]);
    }
    out.keep(std::move(node));
  });
  if (out.replaced()) drop_dead_nodes(graph);
}

}  // namespace tosaic
