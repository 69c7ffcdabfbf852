// SPDX-License-Identifier: Apache-2.0
#include "formats/tosa/known_shape.h"

#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa_file {

bool computes_shape(const Node& node) {
  const tosa::Op* row = tosa::find(node.op);
  return row && row->newer && !row->in_1_0;
}

Status compute_shape(Graph& graph, const Node& node) {
  Graph alone;
  Node copy{node.op, {}, node.attrs, {}, node.loc, {}};
  std::vector<TensorView> in;
  for (const ValueId v : node.inputs) {
    const Value& value = graph[v];
    copy.inputs.push_back(alone.add_value(value.name, value.type, value.constant));
    if (!value.is_constant()) alone.inputs.push_back(copy.inputs.back());
    in.push_back({value.type, value.constant.data()});
  }
  for (const ValueId v : node.outputs) {
    copy.outputs.push_back(alone.add_value(graph[v].name, graph[v].type));
    alone.outputs.push_back(copy.outputs.back());
  }
  alone.nodes.push_back(copy);
  TOSAIC_CHECK(tosa::verify_graph(alone, tosa::Spec::everything()));
  std::vector<MutableTensorView> out;
  for (const ValueId v : node.outputs) {
    std::byte* memory = nullptr;
    graph[v].constant = Bytes::fresh(graph[v].type.storage_bytes(), memory);
    out.push_back({graph[v].type, memory});
  }
  return tosa::find(node.op)->eval({tosa::View(alone, copy), in, out});
}

}  // namespace tosaic::tosa_file
