// SPDX-License-Identifier: Apache-2.0
// RESHAPEs between two commands. Vela forgets them early: it gives the tensor one of the two shapes and merges what
// stands on both sides, not always with the shape that a command was written for (docs/developer/ethos-u.md, 3.7). So
// what can be merged stands on one side here.
#include <algorithm>

#include "ir/tosa_operators.h"
#include "targets/ethos_u/rewrites.h"
#include "tidy/tidy.h"

namespace tosaic::ethos_u {
namespace {

// One operand besides constants that fit any shape: what may stand before or behind a view. A RESCALE that widens is
// part of what reads it.
bool pointwise(const Graph& graph, const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  if (!op || !op->elementwise || node.outputs.size() != 1 || node.attrs.get_or("per_channel", false)) return false;
  if (node.op != tosa::op::table &&
      storage_size(graph[node.outputs[0]].type.dtype) > storage_size(graph[node.inputs[0]].type.dtype))
    return false;
  return std::count_if(op->inputs.begin(), op->inputs.end(), [](const auto& in) { return !in.constant; }) == 1;
}

// An activation, which is fused into the command before it.
bool activation(const Node& node) { return node.op == tosa::op::table || node.op == tosa::op::clamp; }

// Dims as one command has them: what is outside of the last three, with the first of these.
Ints as_image(const Shape& shape) {
  Ints dims = shape.sizes();
  while (dims.size() > 4 || (dims.size() == 4 && dims[0] != 1)) {
    dims[1] *= dims[0];
    dims.erase(dims.begin());
  }
  return dims;
}

}  // namespace

// activation(view(x)) is view(activation(x)), and so on with what is pointwise after it. An activation in more than
// three dims is a command of its own for Vela at first, in an image of its own; fused nevertheless, it gives the
// command before it that image's shape. So it stands where it is one command from the start. `inputs_too`: also where x
// is no command's; a table fused into a TRANSPOSE has no place in 16 KB of shared memory, and what follows a TRANSPOSE
// is fused into it.
void activations_before_views(Graph& graph, bool inputs_too) {
  struct Viewed {
    ValueId source = no_value;
    std::vector<Node> views;  // from it, in order
    bool activated = false;   // the source is an activation that was moved
  };
  const auto once = read_once(graph);
  std::vector<Viewed> viewed(graph.values.size());
  std::vector<char> computed(graph.values.size(), inputs_too ? 1 : 0);
  Rewriter out(graph);
  const auto again = [&](ValueId v, const Viewed& from, ValueId y, const LocRef& loc) {
    for (const Node& view : from.views) {
      const bool last = &view == &from.views.back();
      const ValueId to = last ? y : no_value;
      v = view.op == tosa::op::reshape ? out.reshape(v, graph[view.outputs[0]].type.shape.sizes(), loc, to)
                                       : out.transpose(v, view.attrs.get<Ints>("perms"), loc, to);
    }
  };
  out.each([&](Node& node) {
    const bool view = node.op == tosa::op::reshape || node.op == tosa::op::transpose;
    if (view && computed[node.inputs[0]] && once[node.outputs[0]]) {
      Viewed& from = viewed[node.outputs[0]] = viewed[node.inputs[0]];
      if (from.source == no_value) from.source = node.inputs[0];
      from.views.push_back(node);
    }
    for (ValueId v : node.outputs)
      if (v != no_value) computed[v] = 1;
    const ValueId v = pointwise(graph, node) ? node.inputs[0] : no_value;
    if (v == no_value || !computed[v] || !(activation(node) || viewed[v].activated)) return out.keep(std::move(node));
    Viewed from = viewed[v];
    if (from.source == no_value) from.source = v;
    const ValueId x = from.source, y = node.outputs[0];
    const Ints dims = activation(node) ? as_image(graph[x].type.shape) : graph[x].type.shape.sizes();
    if (from.views.empty() && dims == graph[y].type.shape.sizes()) return out.keep(std::move(node));
    if (dims != graph[x].type.shape.sizes()) {  // back from the image first
      Node back;
      back.op = tosa::op::reshape;
      back.outputs = {x};
      from.views.insert(from.views.begin(), back);
    }
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = out.reshape(x, dims, node.loc);
    const ValueId made = out.add(node.op, inputs, node.attrs, graph[y].type.with(Shape(dims)), node.loc);
    again(made, from, y, node.loc);
    from.source = made, from.activated = true;
    if (once[y]) viewed[y] = std::move(from);
  });
  drop_dead(graph);
}

// rescale(view(x)) is view(rescale(x)): what narrows a command's result and the activation after it are part of the
// command, and have its shape then. Otherwise the activation is fused in dims of its own, and Vela compares the next
// command of a chain with those (chained_views.cpp).
void rescales_before_views(Graph& graph) {
  const auto made_by = producers(graph);
  const auto once = read_once(graph);
  std::vector<char> activated(graph.values.size(), 0);
  std::vector<ValueId> viewed(graph.values.size(), no_value);
  for (const Node& node : graph.nodes) {
    if (activation(node)) activated[node.inputs[0]] = 1;
    if (node.op == tosa::op::reshape && made_by[node.inputs[0]] >= 0) viewed[node.outputs[0]] = node.inputs[0];
  }
  Rewriter out(graph);
  out.each([&](Node& node) {
    const bool moves = node.op == tosa::op::rescale && pointwise(graph, node) && activated[node.outputs[0]] &&
                       once[node.inputs[0]] && viewed[node.inputs[0]] != no_value;
    if (!moves) return out.keep(std::move(node));
    const ValueId x = viewed[node.inputs[0]], y = node.outputs[0];
    std::vector<ValueId> inputs = node.inputs;
    inputs[0] = x;
    const ValueId made = out.add(node.op, inputs, node.attrs, graph[y].type.with(graph[x].type.shape), node.loc);
    out.reshape(made, graph[y].type.shape.sizes(), node.loc, y);
  });
  drop_dead(graph);
}

// A view that leaves the graph and is turned besides is lost as an output: the TRANSPOSE gets a view of its own.
void views_of_their_own(Graph& graph) {
  const auto made_by = producers(graph);
  std::vector<Node> leaving(graph.values.size());
  for (ValueId v : graph.outputs)
    if (made_by[v] >= 0) {
      const Node& node = graph.nodes[static_cast<std::size_t>(made_by[v])];
      if (node.op == tosa::op::reshape) leaving[v] = node;
    }
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const ValueId v = node.op == tosa::op::transpose ? node.inputs[0] : no_value;
    if (v < leaving.size() && !leaving[v].op.none())
      node.inputs[0] = out.add(tosa::op::reshape, leaving[v].inputs, {}, graph[v].type, leaving[v].loc);
    out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
