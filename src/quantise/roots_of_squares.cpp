// SPDX-License-Identifier: Apache-2.0
// Magnitudes, sqrt(a * a + b * b): of a signal that is 40 dB quieter than the loudest, squares have no bit left of 16.
// hypot(a, b) is computed without them.
#include <map>
#include <utility>

#include "ir/rewriter.h"
#include "quantise/powers.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {

void roots_of_squares(Graph& graph, const QuantiseOptions& options) {
  // Squares of 8 bits are whole in 16.
  if (options.scheme != Scheme::int16x8 || !may_have_roots(graph)) return;
  std::map<ValueId, ValueId> of_square;  // what each square is of
  std::map<ValueId, std::pair<ValueId, ValueId>> of_sum;
  const Calls calls(graph);
  Rewriter out(graph);
  bool changed = false;
  for (Node& node : out.nodes()) {
    if (const auto exponent = exponent_of(graph, calls, node)) {
      const auto sum = of_sum.find(node.inputs[0]);
      if (*exponent == 2) of_square.emplace(node.outputs[0], node.inputs[0]);
      if (*exponent == 0.5 && sum != of_sum.end()) {
        const auto [a, b] = sum->second;
        out.add(aten::op::hypot, {a, b}, {}, node.outputs[0], node.loc);
        changed = true;
        continue;
      }
    }
    if (is_plain_sum(node)) {
      const auto a = of_square.find(node.inputs[0]), b = of_square.find(node.inputs[1]);
      if (a != of_square.end() && b != of_square.end())
        of_sum.emplace(node.outputs[0], std::pair(a->second, b->second));
    }
    out.keep(std::move(node));
  }
  if (changed) drop_dead_nodes(graph);
}

}  // namespace tosaic
