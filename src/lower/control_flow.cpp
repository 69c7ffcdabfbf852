// SPDX-License-Identifier: Apache-2.0
#include "lower/control_flow.h"

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "ir/program_operators.h"
#include "ir/tosa_operators.h"
#include "lower/lower.h"

namespace tosaic {
namespace {

class ControlFlow {
 public:
  ControlFlow(Builder& builder, const Node& node) : b_(builder), node_(node) {}

  Vals branch(const std::vector<ValueId>& operands, const std::vector<TensorType>& declared) {
    Node made{tosa::op::cond_if, operands, {}, {}, b_.loc(), {}};
    for (const Graph& body : node_.regions) made.regions.push_back(lowered(body, 0));
    return finished(std::move(made), declared);
  }

  // TOSA carries all that the bodies read: what does not change is handed on.
  Vals loop(const std::vector<ValueId>& operands, std::vector<TensorType> declared) {
    const std::size_t carried = declared.size();
    for (std::size_t i = carried; i < operands.size(); ++i) declared.push_back(b_.graph()[operands[i]].type);
    Node made{tosa::op::while_loop, operands, {}, {}, b_.loc(), {}};
    made.regions.push_back(lowered(node_.regions[0], 0));
    made.regions.push_back(lowered(node_.regions[1], operands.size() - carried));
    Vals results = finished(std::move(made), declared);
    results.resize(carried);
    return results;
  }

 private:
  // With the last `handed_on` inputs behind its outputs. Each output is written by a node of its own.
  Graph lowered(Graph body, std::size_t handed_on) const {
    body.outputs.insert(body.outputs.end(), body.inputs.end() - static_cast<std::ptrdiff_t>(handed_on),
                        body.inputs.end());
    auto made = lower(body, {.spec = b_.spec()});
    if (!made.ok()) throw Refusal{std::move(made.error())};
    Graph& graph = made->graph;
    const auto made_by = producers(graph);
    std::set<ValueId> given;
    Builder builder(graph, b_.spec());
    builder.fold(false);
    builder.set_loc(b_.loc());
    for (ValueId& v : graph.outputs)
      if (graph[v].is_constant() || made_by[v] < 0 || !given.insert(v).second) v = copied(builder, v);
    return std::move(graph);
  }

  static ValueId copied(Builder& builder, ValueId v) {
    Graph& graph = builder.graph();
    const ValueId copy = graph.add_value(fmt::format("{}.out{}", graph[v].name, graph.values.size()), graph[v].type);
    graph.nodes.push_back({tosa::op::identity, {v}, {}, {copy}, builder.loc(), {}});
    return copy;
  }

  Vals finished(Node made, const std::vector<TensorType>& declared) {
    Vals results;
    for (const TensorType& type : declared) {
      made.outputs.push_back(b_.graph().add_value(fmt::format("body.{}", b_.graph().values.size()), type));
      results.emplace_back(&b_, made.outputs.back());
    }
    const tosa::View view(b_.graph(), made);
    if (auto broken = tosa::find(made.op)->check(view))
      b_.refuse("tosa." + broken->label, fmt::format("{}: {}", made.op, broken->message));
    b_.graph().nodes.push_back(std::move(made));
    return results;
  }

  Builder& b_;
  const Node& node_;
};

}  // namespace

Vals lower_control_flow(Builder& b, const Node& node, const std::vector<std::optional<Val>>& operands,
                        const std::vector<TensorType>& declared) {
  const bool cond = node.op == higher_order::op::cond, loop = node.op == higher_order::op::while_loop;
  if ((!cond && !loop) || node.regions.size() != 2)
    b.refuse("model.control-flow", fmt::format("{} is neither a branch nor a loop", node.op));
  std::vector<ValueId> ids;
  for (const auto& v : operands) {
    if (!v) b.refuse("model.control-flow", node.op.text() + " lacks an operand");
    ids.push_back(v->id());
  }
  for (const Graph& body : node.regions)
    if (body.inputs.size() + (cond ? 1 : 0) != ids.size() || (loop && declared.size() > ids.size()))
      b.refuse("model.control-flow",
               fmt::format("{} and its subgraph '{}' take different operands", node.op, body.name));
  ControlFlow flow(b, node);
  return cond ? flow.branch(ids, declared) : flow.loop(ids, declared);
}

}  // namespace tosaic
