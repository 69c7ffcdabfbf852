// SPDX-License-Identifier: Apache-2.0
// clamp(clamp(x)) is one clamp when the ranges overlap; an integer clamp to the dtype's whole range is none,
// unless an NPU's compiler should see the activation that it stands for.
#include <algorithm>

#include "ir/dtype.h"
#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "tidy/tidy.h"

namespace tosaic {

bool merge_clamps(Graph& graph, bool keep_activations) {
  auto made_by = producers(graph);
  Forward forward;
  bool changed = false;
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  std::vector<char> rescales(graph.nodes.size(), 0);  // nodes that are a RESCALE with one reader
  const auto read_by = consumers(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    rescales[n] = graph.nodes[n].op == tosa::op::rescale && read_by[graph.nodes[n].outputs[0]].size() == 1;
  for (Node& node : graph.nodes) {
    forward.operands(node);
    if (node.op != tosa::op::clamp) continue;
    std::int32_t p = made_by[node.inputs[0]];
    if (p >= 0 && graph.nodes[static_cast<std::size_t>(p)].op == tosa::op::clamp) {
      const Node& inner = graph.nodes[static_cast<std::size_t>(p)];
      auto merged = [&]<class T>(T) {
        T low = node.attrs.get<T>("min_val"), high = node.attrs.get<T>("max_val");
        T inner_low = inner.attrs.get<T>("min_val"), inner_high = inner.attrs.get<T>("max_val");
        T new_low = std::max(low, inner_low), new_high = std::min(high, inner_high);
        if (new_low > new_high || inner.attrs.get<std::string>("nan_mode") != node.attrs.get<std::string>("nan_mode"))
          return false;
        node.attrs.set("min_val", new_low);
        node.attrs.set("max_val", new_high);
        node.inputs[0] = inner.inputs[0];
        return true;
      };
      bool integers = std::holds_alternative<std::int64_t>(*node.attrs.find("min_val")) &&
                      std::holds_alternative<std::int64_t>(*inner.attrs.find("min_val"));
      bool reals = std::holds_alternative<double>(*node.attrs.find("min_val")) &&
                   std::holds_alternative<double>(*inner.attrs.find("min_val"));
      changed |= integers ? merged(std::int64_t{}) : reals && merged(0.0);
    }
    if (const auto* low = std::get_if<std::int64_t>(node.attrs.find("min_val"))) {
      auto whole = range_of(graph[node.inputs[0]].type.dtype);
      if (*low <= whole.lowest && node.attrs.get<std::int64_t>("max_val") >= whole.highest &&
          !is_output[node.outputs[0]] && !(keep_activations && p >= 0 && rescales[static_cast<std::size_t>(p)]))
        forward.set(node.outputs[0], node.inputs[0]);
    }
  }
  changed |= forward.changed();
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
