// SPDX-License-Identifier: Apache-2.0
#include "quantise/successors.h"

namespace tosaic {

Successors::Successors(const Graph& before, const Graph& now, ValueId kept)
    : value_(now.values.size(), no_value), node_(now.nodes.size()), stays_(before.nodes.size(), 0) {
  for (ValueId v = 0; v < kept && v < now.values.size(); ++v) value_[v] = v;
  const auto made_by = producers(before);
  for (std::size_t n = now.nodes.size(); n-- > 0;) {
    const Node& node = now.nodes[n];
    const ValueId y = node.outputs.empty() || node.outputs[0] == no_value ? no_value : value_[node.outputs[0]];
    if (y == no_value || made_by[y] < 0) continue;
    const auto was = static_cast<std::size_t>(made_by[y]);
    const Node& same = before.nodes[was];
    const bool alike = same.op == node.op && same.inputs.size() == node.inputs.size();
    if (!alike && y >= kept) continue;
    node_[n] = was;
    stays_[was] = 1;
    for (std::size_t i = 0; alike && i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != no_value && v >= kept && same.inputs[i] != no_value)
        if (same.inputs[i] >= kept) value_[v] = same.inputs[i];
  }
}

}  // namespace tosaic
