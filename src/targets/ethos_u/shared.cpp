// SPDX-License-Identifier: Apache-2.0
// Tensors that several commands read, each in a shape or form of its own. Vela 5.1.0 and 5.2.0 keep one shape and one
// form of a tensor (docs/developer/ethos-u.md, 3.7), so each reader that needs another gets a tensor of its own here.
#include <algorithm>
#include <map>
#include <set>

#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

bool is_view(const Node& node) { return node.op == tosa::op::reshape; }

// By value: what it is a view of, through any number of RESHAPEs.
std::vector<ValueId> sources(const Graph& graph) {
  std::vector<ValueId> source(graph.values.size());
  for (ValueId v = 0; v < source.size(); ++v) source[v] = v;
  for (const Node& node : graph.nodes)
    if (is_view(node)) source[node.outputs[0]] = source[node.inputs[0]];
  return source;
}

// A widening RESCALE of the whole tensor: part of the command that reads it.
bool widens(const Graph& graph, const Node& node) {
  return node.op == tosa::op::rescale && !node.attrs.get_or("per_channel", false) &&
         graph[node.outputs[0]].type.dtype == DType::i32 && graph[node.inputs[0]].type.dtype != DType::i32;
}

}  // namespace

// view(rescale(x)) is rescale(view(x)): a RESCALE is fused into the command that reads it, and the view between them is
// forgotten where the command broadcasts what it reads.
void move_rescales_after_views(Graph& graph) {
  std::vector<Node> widened(graph.values.size());
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (widens(graph, node)) widened[node.outputs[0]] = node;
    const Node* rescale = is_view(node) && node.inputs[0] < widened.size() ? &widened[node.inputs[0]] : nullptr;
    if (!rescale || rescale->op.none()) return out.keep(std::move(node));
    const ValueId y = node.outputs[0];
    std::vector<ValueId> inputs = rescale->inputs;
    inputs[0] = out.reshape(inputs[0], graph[y].type.shape.sizes(), node.loc);
    const ValueId made = out.add(rescale->op, inputs, rescale->attrs, graph[y].type, rescale->loc, y);
    widened[made] = {rescale->op, inputs, rescale->attrs, {made}, rescale->loc, {}};
  });
  drop_dead(graph);
}

// SELECT becomes three commands, which take the shape that the tensor has elsewhere: what is read in other shapes, too,
// is copied for it, by a RESCALE of exactly 1.
void copy_selected_operands(Graph& graph) {
  const auto source = sources(graph);
  std::map<ValueId, std::set<Ints>> shapes;  // in which commands read what a source holds
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs)
      if (v != no_value && !is_view(node) && !graph[v].is_constant())
        shapes[source[v]].insert(graph[v].type.shape.sizes());
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (node.op != tosa::op::select) return out.keep(std::move(node));
    for (std::size_t i : {1, 2}) {
      ValueId& v = node.inputs[i];
      const DType dtype = graph[v].type.dtype;
      const bool is_integer_type = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32;
      if (v >= source.size() || !is_integer_type || graph[v].is_constant() || shapes[source[v]].size() < 2) continue;
      v = out.copied(v, node.loc);
    }
    out.keep(std::move(node));
  });
}

// U55 and U65 multiply matrices by a command for each column, and several matrices by some for each: what is cut out of
// a larger tensor is then read as if it were whole, so it is copied first.
void copy_shared_operands(Graph& graph) {
  std::vector<char> cut(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    if (node.op == tosa::op::slice || (is_view(node) && cut[node.inputs[0]])) cut[node.outputs[0]] = 1;
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (node.op == tosa::op::matmul && graph[node.inputs[0]].type.shape.size(0) > 1)
      for (std::size_t i : {0, 1})
        if (const ValueId v = node.inputs[i]; v < cut.size() && cut[v]) node.inputs[i] = out.copied(v, node.loc);
    out.keep(std::move(node));
  });
}

// True is 1 where it leaves the graph and all ones inside: what reads a boolean that leaves would read 1. The output
// gets a command of its own.
void booleans_of_their_own(Graph& graph) {
  const auto made_by = producers(graph);
  const auto users = consumers(graph);
  for (ValueId& output : graph.outputs) {
    if (graph[output].type.dtype != DType::boolean || made_by[output] < 0) continue;
    std::vector<std::size_t> chain;  // from the output back to what computes it
    bool shared = !users[output].empty();
    for (ValueId v = output; made_by[v] >= 0; v = graph.nodes[chain.back()].inputs[0]) {
      chain.push_back(static_cast<std::size_t>(made_by[v]));
      shared |= v != output && users[v].size() > 1;
      const Node& node = graph.nodes[chain.back()];
      if (!is_view(node) && node.op != tosa::op::transpose) break;
    }
    if (!shared || chain.empty()) continue;
    ValueId made = no_value;
    for (auto n = chain.rbegin(); n != chain.rend(); ++n) {
      Node copy = graph.nodes[*n];
      if (made != no_value) copy.inputs[0] = made;
      const Value& like = graph[copy.outputs[0]];
      made = graph.add_value(like.name, like.type);
      copy.outputs = {made};
      graph.nodes.push_back(std::move(copy));
    }
    std::swap(graph[made].name, graph[output].name);
    output = made;
  }
}

}  // namespace tosaic::ethos_u
