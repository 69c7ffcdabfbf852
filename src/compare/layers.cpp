// SPDX-License-Identifier: Apache-2.0
#include "compare/layers.h"

#include <algorithm>

#include "ir/aten_operators.h"

namespace tosaic {
namespace {

// Where PyTorch's operators have their channels. A convolution's are the dim after the batch, whose absence its
// weight's rank tells. What follows keeps them where it can; other tensors have their features last.
bool is_convolution(const Node& node) { return node.op.name().starts_with("aten.conv"); }

class ChannelDims {
 public:
  explicit ChannelDims(const Graph& graph) : graph_(graph), dims_(graph.values.size(), -1) {
    for (ValueId v : graph.inputs) dims_[v] = otherwise(v);
    for (const Node& node : graph.nodes)
      for (ValueId y : node.outputs)
        if (y != no_value) dims_[y] = of_result(node, y);
  }
  int of(ValueId v) const { return dims_[v]; }

 private:
  int of_result(const Node& node, ValueId y) const {
    const Shape& shape = graph_[y].type.shape;
    for (ValueId w : node.inputs) {
      if (w == no_value || !graph_[w].is_constant()) continue;
      const TensorType& weight = graph_[w].type;
      const bool by_channel = weight.quantised() && !weight.scales->per_tensor();
      if (weight.rank() >= 3 && (by_channel || is_convolution(node)) && shape.rank() + 1 >= weight.rank())
        return shape.rank() + 1 - weight.rank();
    }
    for (ValueId x : node.inputs)
      if (x != no_value && !graph_[x].is_constant() && dims_[x] >= 0 && graph_[x].type.rank() == shape.rank() &&
          graph_[x].type.shape.size(dims_[x]) == shape.size(dims_[x]))
        return dims_[x];
    return otherwise(y);
  }
  int otherwise(ValueId v) const {
    const int rank = graph_[v].type.rank();
    return rank >= 4 ? 1 : rank - 1;
  }

  const Graph& graph_;
  std::vector<int> dims_;
};

}  // namespace

bool Counterparts::is_ours(const Node& call) const {
  if (call.op.is_conversion()) return true;
  return call.op == aten::op::clone && !by_name_.contains(quantised_[call.outputs[0]].name);
}

Counterparts::Counterparts(const Graph& quantised, const Graph& floats)
    : quantised_(quantised), of_(quantised.values.size(), no_value) {
  for (ValueId v = 0; v < floats.values.size(); ++v) by_name_.emplace(floats[v].name, v);
  for (ValueId v = 0; v < of_.size(); ++v)
    if (const auto found = by_name_.find(quantised[v].name);
        found != by_name_.end() && floats[found->second].type.shape == quantised[v].type.shape)
      of_[v] = found->second;
  // What only stands on the other side of a conversion is the same tensor.
  const auto pass = [&](const Node& call, bool back) {
    if (!is_ours(call) || call.inputs[0] == no_value) return;
    const ValueId x = call.inputs[0], y = call.outputs[0];
    if (back && of_[x] == no_value) of_[x] = of_[y];
    if (!back && of_[y] == no_value) of_[y] = of_[x];
  };
  for (std::size_t n = quantised.nodes.size(); n-- > 0;) pass(quantised.nodes[n], true);
  for (const Node& call : quantised.nodes) pass(call, false);
}

std::vector<Layer> layers_of(const Graph& quantised, const FloatProgram& floats, const Counterparts& counterparts) {
  const ChannelDims channels(quantised);
  const auto made_by = producers(quantised);
  const auto held = [&](ValueId v) {
    const ValueId wanted = counterparts.of(v);
    return wanted != no_value && quantised[v].type.quantised() && floats.held[wanted] != 0;
  };
  const auto add_calls = [&](auto& self, std::size_t n, std::vector<std::size_t>& calls) -> void {
    if (std::ranges::find(calls, n) != calls.end()) return;
    for (ValueId v : quantised.nodes[n].inputs)
      if (v != no_value && made_by[v] >= 0 && held(v)) self(self, static_cast<std::size_t>(made_by[v]), calls);
    calls.push_back(n);
  };
  std::vector<Layer> layers;
  for (std::size_t n = 0; n < quantised.nodes.size(); ++n) {
    const Node& call = quantised.nodes[n];
    if (counterparts.is_ours(call)) continue;
    for (ValueId y : call.outputs) {
      const ValueId wanted = counterparts.of(y);
      if (wanted == no_value || held(y) || !is_float(floats.graph[wanted].type.dtype)) continue;
      Layer& layer = layers.emplace_back();
      add_calls(add_calls, n, layer.calls);
      layer.result = y;
      layer.wanted = wanted;
      layer.channel_dim = channels.of(y);
    }
  }
  return layers;
}

}  // namespace tosaic
