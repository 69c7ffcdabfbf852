// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_set>

#include "partition/partition.h"

namespace tosaic {

void widen_outside(Graph& outer, const std::vector<std::string>& narrowed) {
  if (narrowed.empty()) return;
  const std::unordered_set<std::string> names(narrowed.begin(), narrowed.end());
  auto conversion = [](const Node& node) { return node.op == "aten._to_copy.default"; };
  std::vector<Node> nodes = std::move(outer.nodes);
  outer.nodes.clear();
  std::vector<ValueId> read_as(outer.values.size()), wide(outer.values.size(), no_value);
  for (ValueId v = 0; v < read_as.size(); ++v) read_as[v] = v;
  for (Node& node : nodes) {
    // A conversion back to int64 takes the kernel's own result.
    if (conversion(node) && node.inputs.size() == 1 && wide[node.inputs[0]] != no_value &&
        outer[node.outputs[0]].type.dtype == DType::i64) {
      read_as[node.outputs[0]] = wide[node.inputs[0]];
      continue;
    }
    for (ValueId& v : node.inputs)
      if (v != no_value) v = read_as[v];
    const bool kernel = node.op != "delegate" && !conversion(node);
    std::vector<Node> after;
    for (ValueId v : node.outputs) {
      if (!kernel || v == no_value || outer[v].type.dtype != DType::i32 || !names.contains(outer[v].name)) continue;
      outer[v].type.dtype = DType::i64;
      ValueId narrow = outer.add_value(outer[v].name + ".i32", outer[v].type.with(DType::i32));
      read_as.push_back(narrow);
      wide.push_back(no_value);
      read_as[v] = narrow;
      wide[v] = v;
      Node copy;
      copy.op = "aten._to_copy.default";
      copy.inputs = {v};
      copy.outputs = {narrow};
      copy.attrs.set("dtype", DType::i32);
      copy.loc = node.loc;
      after.push_back(std::move(copy));
    }
    outer.nodes.push_back(std::move(node));
    std::move(after.begin(), after.end(), std::back_inserter(outer.nodes));
  }
  for (ValueId& v : outer.outputs) v = read_as[v];
  drop_dead(outer);
}

}  // namespace tosaic
