// SPDX-License-Identifier: Apache-2.0
// Weights of 16 bits next to activations of 16, which TOSA does not have: a layer is the sum of two,
//   layer(x; W, b) = layer(x; Q, b) + layer(x; W - Q)
// where Q is what 8 bits hold of W. What they leave is a 256th of it, and has 8 bits of its own.
#include <map>
#include <span>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ops/lowering/weight.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/quantise.h"
#include "quantise/quantise_weight.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

constexpr std::size_t weight_operand = 1, bias_operand = 2;

class InTwo {
 public:
  InTwo(Graph& graph, const QuantiseOptions& options) : graph_(graph), options_(options), out_(graph) {}

  void run() {
    for (Node& node : out_.nodes())
      if (!divided(node)) out_.keep(std::move(node));
  }

 private:
  struct Parts {
    ValueId high, low;  // low: no_value where 8 bits hold all of the weight
  };

  bool divided(const Node& node) {
    const FoundOp found = find_aten(node.op);
    if (!found.rule->accumulates || !found.schema->argument("weight") || node.outputs.size() != 1 ||
        node.inputs.size() <= weight_operand || node.inputs[weight_operand] == no_value)
      return false;
    const Value& weight = graph_[node.inputs[weight_operand]];
    if (!weight.is_constant() || weight.type.dtype != DType::f32 || weight.type.quantised()) return false;
    const Parts parts =
        parts_of(node.inputs[weight_operand], options_.per_channel ? weight_axis(*found.schema, node.attrs) : -1);
    if (parts.low == no_value) return false;
    const std::string name = graph_[node.outputs[0]].name;
    const TensorType type = graph_[node.outputs[0]].type;
    const auto layer = [&](ValueId w, const char* part, bool biased) {
      std::vector<ValueId> operands = node.inputs;
      operands[weight_operand] = w;
      if (operands.size() > bias_operand && !biased) operands[bias_operand] = no_value;
      return out_.add(node.op, std::move(operands), node.attrs, graph_.add_value(name + part, type), node.loc);
    };
    const ValueId high = layer(parts.high, ".high", true), low = layer(parts.low, ".low", false);
    out_.add(aten::op::add_Tensor, {high, low}, {}, node.outputs[0], node.loc);
    return true;
  }

  Parts parts_of(ValueId w, int axis) {
    const auto [found, fresh] = known_.try_emplace({w, axis}, Parts{no_value, no_value});
    if (!fresh) return found->second;
    const Tensor weight{graph_[w].type, graph_[w].constant};
    const Tensor quantised = quantise_weight(weight, axis);
    const std::span<const float> floats = weight.data.as<float>();
    const std::span<const std::int8_t> values = quantised.data.as<std::int8_t>();
    const std::vector<double>& scales = quantised.type.scales->scale;
    std::size_t run = 1;  // elements of one channel side by side
    for (int d = axis + 1; axis >= 0 && d < weight.type.rank(); ++d)
      run *= static_cast<std::size_t>(weight.type.shape.size(d));
    float *held = nullptr, *rest = nullptr;
    Bytes high = Bytes::fresh(floats.size(), held), low = Bytes::fresh(floats.size(), rest);
    bool any = false;
    for (std::size_t i = 0; i < floats.size(); ++i) {
      held[i] = static_cast<float>(values[i] * scales[i / run % scales.size()]);
      rest[i] = floats[i] - held[i];
      any |= rest[i] != 0;
    }
    if (!any) return found->second;
    const std::string name = graph_[w].name;
    const TensorType type = graph_[w].type;
    return known_[{w, axis}] = {graph_.add_value(name + ".high", type, std::move(high)),
                                graph_.add_value(name + ".low", type, std::move(low))};
  }

  Graph& graph_;
  const QuantiseOptions& options_;
  Rewriter out_;
  std::map<std::pair<ValueId, int>, Parts> known_;  // steps of a recurrent layer have one weight
};

}  // namespace

void weights_in_two(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options) {
  if (options.scheme != Scheme::int16x8 || !options.sixteen_bits) return;
  InTwo(graph, options).run();
  inner.resize(graph.values.size(), 1);
}

}  // namespace tosaic
