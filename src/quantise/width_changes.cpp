// SPDX-License-Identifier: Apache-2.0
// Where parts of a program that compute with different precision meet.
#include <algorithm>

#include "ir/aten_operators.h"
#include "ops/lowering/conversion.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

// A tensor's quantised values in the other width. From 8 to 16 bits all are multiples of 128: nothing is rounded.
TensorType other_width(const TensorType& type, bool wide, const std::map<ValueId, Range>& narrow, ValueId v) {
  if (wide) return {DType::i16, type.shape, Scales{{type.scales->scale[0] / 128}, {0}}};
  const double reach = type.scales->scale[0] * 32767;
  const auto it = narrow.find(v);
  return {DType::i8, type.shape,
          affine_scales(it != narrow.end() ? it->second : Range{.lowest = -reach, .highest = reach}, DType::i8)};
}

class WidthChanges {
 public:
  WidthChanges(Graph& graph, const QuantisationPlan& plan, const std::map<ValueId, Range>& narrow)
      : graph_(graph), plan_(plan), narrow_(narrow), out_(graph) {}

  void insert() {
    auto change = plan_.width_changes.begin();
    for (std::size_t n = 0; n < out_.nodes().size(); ++n) {
      Node node = std::move(out_.nodes()[n]);
      for (; change != plan_.width_changes.end() && change->node == n; ++change)
        if (ValueId& v = node.inputs[change->operand]; graph_[v].type.quantised())
          v = copied(v, change->wide, node.loc);
      if (plan_.floating(n)) reals_.operands(node);
      out_.keep(
          std::move(node), [&](ValueId v) { return plan_.floating(n) && graph_[v].type.quantised() ? real(v) : v; },
          [&](ValueId real, ValueId quantised_value, const LocRef& loc) {
            out_.keep(quantise_node(graph_[quantised_value].type, real, quantised_value, loc));
          });
    }
  }

 private:
  ValueId copied(ValueId v, bool wide, const LocRef& loc) {
    auto [it, fresh] = copies_.try_emplace({v, wide}, no_value);
    if (!fresh) return it->second;
    it->second =
        graph_.add_value(graph_[v].name + (wide ? ".i16" : ".i8"), other_width(graph_[v].type, wide, narrow_, v));
    return out_.add(aten::op::clone, {v}, {}, it->second, loc);
  }
  // What a float call gives before it is quantised.
  ValueId real(ValueId v) {
    const ValueId made = graph_.add_value(graph_[v].name + ".real", {DType::f32, graph_[v].type.shape, {}});
    reals_.set(v, made);
    return made;
  }

  Graph& graph_;
  const QuantisationPlan& plan_;
  const std::map<ValueId, Range>& narrow_;
  Rewriter out_;
  std::map<std::pair<ValueId, bool>, ValueId> copies_;
  Forward reals_;
};

// Quantised values of the planned type: what they are is not asked.
Tensor nominal_types(ValueId, const Tensor& weight, int axis, DType dtype) {
  const Shape& shape = weight.type.shape;
  const auto channels = axis < 0 ? std::size_t{1} : static_cast<std::size_t>(shape.size(axis));
  const auto largest = range_of(dtype).highest;
  Scales scales{std::vector<double>(channels, 1.0 / static_cast<double>(largest)),
                std::vector<std::int64_t>(channels, 0), axis, -largest, largest};
  const TensorType type{dtype == DType::i4 ? DType::i8 : dtype, shape, std::move(scales)};
  return {type, Bytes::of(std::vector<std::byte>(type.storage_bytes()))};
}

}  // namespace

void insert_width_changes(Graph& graph, const QuantisationPlan& plan, const std::map<ValueId, Range>& narrow) {
  if (!plan.forms.empty()) WidthChanges(graph, plan, narrow).insert();
}

Graph on_nominal_scales(Graph graph, const QuantisationPlan& plan) {
  const std::vector<Range> ranges(graph.values.size(), Range{-1, 1});
  give_types(graph, plan, ranges, std::vector<char>(ranges.size(), 1));
  give_weights(graph, plan, nominal_types);
  insert_width_changes(graph, plan, {});
  return graph;
}

}  // namespace tosaic
