// SPDX-License-Identifier: Apache-2.0
// In-place calls become their functional forms; later readers of the changed tensor read the new value.
// A write through a view would also change what the view looks at: it is accepted only when nobody reads
// that afterwards.
#include <fmt/format.h>
#include <numeric>

#include "normalise/normalise.h"
#include "ops/op.h"

namespace tosaic {
namespace {

std::string functional_name(const Schema& schema) {
  return schema.ns + "." + schema.name.substr(0, schema.name.size() - 1) + "." + schema.overload;
}

}  // namespace

Status functionalise(Graph& graph) {
  std::vector<ValueId> current(graph.values.size());  // what a reader of the value gets now
  std::iota(current.begin(), current.end(), 0);
  std::vector<ValueId> base(graph.values.size(), no_value);  // the tensor that a view looks at
  std::vector<std::size_t> last_read(graph.values.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value) last_read[v] = n;
  for (ValueId v : graph.outputs) last_read[v] = graph.nodes.size();

  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    std::vector<ValueId> original = node.inputs;
    for (ValueId& v : node.inputs)
      if (v != no_value) v = current[v];
    FoundOp found = find_aten(node.op);
    if (!found.op || node.inputs.empty() || node.outputs.empty()) continue;
    if (!found.schema->in_place) {
      if (found.schema->view)
        for (ValueId v : node.outputs)
          if (v != no_value) base[v] = original[0];
      continue;
    }
    ValueId target = original[0], result = node.outputs[0];
    for (ValueId b = base[target]; b != no_value; b = base[b])
      if (last_read[b] > n)
        return located(
            error("model.write-through-view", fmt::format("{} changes '{}', a view of '{}' that is read later", node.op,
                                                          graph[target].name, graph[b].name))
                .hint("write into a new tensor (torch.cat, torch.where) instead of a slice"),
            node.loc);
    for (ValueId v = 0; v < base.size(); ++v)
      if (base[v] == target && last_read[v] > n)
        return located(
            error("model.write-under-view", fmt::format("{} changes '{}' while '{}', a view of it, is read later",
                                                        node.op, graph[target].name, graph[v].name))
                .hint("use the out-of-place form of the call"),
            node.loc);
    std::string name = functional_name(*found.schema);
    if (find_aten(name).op) node.op = name;
    current[target] = result;
  }
  for (ValueId& v : graph.outputs) v = current[v];
  return {};
}

}  // namespace tosaic
