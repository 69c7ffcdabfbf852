// SPDX-License-Identifier: Apache-2.0
#include "ir/rewriter.h"

namespace tosaic {

void Forward::set(ValueId from, ValueId to) {
  for (auto v = static_cast<ValueId>(to_.size()); v <= from; ++v) to_.push_back(v);
  to_[from] = to;
}

void Forward::operands(Node& node) const {
  for (ValueId& v : node.inputs) v = (*this)(v);
}

void Forward::outputs(Graph& graph) const {
  for (ValueId& v : graph.outputs) v = (*this)(v);
}

Rewriter::Rewriter(Graph& graph) : graph_(graph), nodes_(std::exchange(graph.nodes, {})) {
  graph.nodes.reserve(nodes_.size());
}

ValueId Rewriter::add(Operator op, std::vector<ValueId> inputs, Attrs attrs, ValueId to, LocRef loc) {
  graph_.nodes.push_back({op, std::move(inputs), std::move(attrs), {to}, std::move(loc), {}});
  return to;
}

}  // namespace tosaic
