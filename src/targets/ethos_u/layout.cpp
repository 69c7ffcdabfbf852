// SPDX-License-Identifier: Apache-2.0
// Slices and transposes, said so that Vela has one command for them: cut first, then turn, in four dims.
#include <algorithm>
#include <numeric>
#include <optional>

#include "targets/ethos_u/rewrites.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

std::int64_t product(const Ints& dims, std::size_t begin, std::size_t end) {
  std::int64_t n = 1;
  for (std::size_t d = begin; d < end; ++d) n *= dims[d];
  return n;
}

// A transpose in the least rank: dims of size 1 left out, dims that stay neighbours merged.
struct Turn {
  Ints dims, perm;
};

Turn least_rank(const Shape& shape, const Ints& perm) {
  std::vector<Ints> groups;  // input dims in output order, neighbours together
  for (std::int64_t p : perm) {
    if (shape.size(static_cast<int>(p)) == 1) continue;
    std::int64_t next = groups.empty() ? shape.rank() : groups.back().back() + 1;
    while (next < shape.rank() && shape.size(static_cast<int>(next)) == 1) ++next;
    if (next == p)
      groups.back().push_back(p);
    else
      groups.push_back({p});
  }
  std::vector<std::size_t> order(groups.size());  // the groups in input order
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return groups[a][0] < groups[b][0]; });
  Turn turn{{}, Ints(groups.size())};
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t size = 1;
    for (std::int64_t d : groups[order[i]]) size *= shape.size(static_cast<int>(d));
    turn.dims.push_back(size);
    turn.perm[order[i]] = static_cast<std::int64_t>(i);
  }
  return turn;
}

bool turn_in_four(Rewriter& out, const Graph& graph, const Node& node) {
  Turn turn = least_rank(graph[node.inputs[0]].type.shape, node.attrs.get<Ints>("perms"));
  if (turn.dims.size() > 4 || turn.dims.size() < 2) return false;
  while (turn.dims.size() < 4) {
    turn.dims.insert(turn.dims.begin(), 1);
    for (std::int64_t& p : turn.perm) ++p;
    turn.perm.insert(turn.perm.begin(), 0);
  }
  const ValueId y = node.outputs[0];
  const ValueId turned = out.transpose(out.reshape(node.inputs[0], turn.dims, node.loc), turn.perm, node.loc);
  out.reshape(turned, graph[y].type.shape.sizes(), node.loc, y);
  return true;
}

// A slice in four dims with a leading 1: what lies inside a cut dim, up to the next one, is cut together with it. More
// than three cut dims take several slices.
bool slice_in_four(Rewriter& out, const Graph& graph, const Node& node) {
  const auto cut = constant_cut(graph, node);
  if (!cut) return false;
  Ints dims = graph[node.inputs[0]].type.shape.sizes();
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (cut->size[d] != dims[d]) axes.push_back(d);
  if (axes.empty()) return false;
  const ValueId y = node.outputs[0];
  ValueId x = node.inputs[0];
  for (std::size_t first = 0; first < axes.size();) {
    const std::int64_t outer = product(dims, 0, axes[first]);
    const std::size_t last = std::min(axes.size(), first + (outer == 1 ? 3 : 2));
    Ints view{outer}, start{0}, size{outer};
    for (std::size_t a = first; a < last; ++a) {
      const std::size_t axis = axes[a], end = a + 1 < last ? axes[a + 1] : dims.size();
      const std::int64_t inner = product(dims, axis + 1, end);
      view.push_back(dims[axis] * inner), start.push_back(cut->start[axis] * inner);
      size.push_back(cut->size[axis] * inner);
      dims[axis] = cut->size[axis];
    }
    for (Ints* four : {&view, &start, &size}) four->insert(four->begin(), 4 - four->size(), four == &start ? 0 : 1);
    x = out.slice(out.reshape(x, view, node.loc), start, size, node.loc);
    first = last;
  }
  out.reshape(x, graph[y].type.shape.sizes(), node.loc, y);
  return true;
}

}  // namespace

std::vector<char> read_once(const Graph& graph) {
  const auto read_by = consumers(graph);
  std::vector<char> once(graph.values.size());
  for (ValueId v = 0; v < once.size(); ++v) once[v] = read_by[v].size() == 1;
  for (ValueId v : graph.outputs) once[v] = 0;
  return once;
}

std::optional<Cut> constant_cut(const Graph& graph, const Node& node) {
  const tosa::View view(graph, node);
  auto start = view.constant_integers(1), size = view.constant_integers(2);
  if (!start || !size) return std::nullopt;
  return Cut{*std::move(start), *std::move(size)};
}

// slice(transpose(x)) is transpose(slice(x)), where nobody reads the transposed tensor as a whole: the pieces of a
// packed query, key and value are cut out before they are turned.
void slices_before_transposes(Graph& graph) {
  const auto made_by = producers(graph);
  const auto read_by = consumers(graph);
  std::vector<char> whole(graph.values.size(), 0);  // read by something that is no slice
  for (ValueId v : graph.outputs) whole[v] = 1;
  for (ValueId v = 0; v < graph.values.size(); ++v)
    for (std::uint32_t n : read_by[v]) whole[v] |= graph.nodes[n].op != tosa::op::slice;
  std::vector<Node> turns(graph.nodes.size());  // the transpose whose result node n slices
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != tosa::op::slice || made_by[node.inputs[0]] < 0 || whole[node.inputs[0]]) continue;
    const Node& before = graph.nodes[static_cast<std::size_t>(made_by[node.inputs[0]])];
    if (before.op == tosa::op::transpose && constant_cut(graph, node)) turns[n] = before;
  }
  Rewriter out(graph);
  for (std::size_t n = 0; n < turns.size(); ++n) {
    Node node = std::move(out.nodes()[n]);
    if (turns[n].op.none()) {
      out.keep(std::move(node));
      continue;
    }
    const Cut cut = *constant_cut(graph, node);
    const auto& perm = turns[n].attrs.get<Ints>("perms");
    Cut before{Ints(perm.size()), Ints(perm.size())};
    for (std::size_t d = 0; d < perm.size(); ++d) {
      before.start[static_cast<std::size_t>(perm[d])] = cut.start[d];
      before.size[static_cast<std::size_t>(perm[d])] = cut.size[d];
    }
    const ValueId part = out.slice(turns[n].inputs[0], before.start, before.size, node.loc);
    out.transpose(part, perm, turns[n].loc, node.outputs[0]);
  }
  drop_dead(graph);
}

// More than four dims cost a command per row; both operations can be said in four, with a leading 1.
void at_most_four_dims(Graph& graph) {
  Rewriter out(graph);
  for (Node& node : out.nodes()) {
    const bool wide = !node.inputs.empty() && graph[node.inputs[0]].type.rank() > 4;
    if (wide && node.op == tosa::op::transpose && turn_in_four(out, graph, node)) continue;
    if (wide && node.op == tosa::op::slice && slice_in_four(out, graph, node)) continue;
    out.keep(std::move(node));
  }
}

}  // namespace tosaic::ethos_u
