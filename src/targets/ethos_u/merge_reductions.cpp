// SPDX-License-Identifier: Apache-2.0
// The mean over an image is two sums, along W and along H. The axes lie next to each other, so one sum along a view
// (1, H*W, C) does both, and the tensor in between goes (docs/developer/ethos-u.md, 3.4; maxima gain nothing).
#include <cstdlib>

#include "ir/tosa_operators.h"
#include "targets/ethos_u/rewrites.h"
#include "tidy/tidy.h"

namespace tosaic::ethos_u {
namespace {

bool is_sum(const Node& node) { return node.op == tosa::op::reduce_sum; }

// Whether two sums, the second of the first, run along neighbouring axes; `low` becomes the first of these.
bool are_neighbours(const Graph& graph, const Node& first, const Node& second, std::size_t& low) {
  const auto a = first.attrs.get<std::int64_t>("axis"), b = second.attrs.get<std::int64_t>("axis");
  low = static_cast<std::size_t>(std::min(a, b));
  const auto& dims = graph[first.inputs[0]].type.shape.sizes();
  return std::abs(a - b) == 1 && dims[low] * dims[low + 1] <= longest_axis;
}

bool one_round(Graph& graph) {
  bool changed = false;
  const auto made_by = producers(graph);
  const auto once = read_once(graph);
  const std::vector<Node> before = graph.nodes;
  Rewriter out(graph);
  out.each([&](Node& node) {
    std::size_t low = 0;
    const ValueId between = is_sum(node) ? node.inputs[0] : no_value;
    const bool alone = between < made_by.size() && made_by[between] >= 0 && once[between];
    const Node* first = alone ? &before[static_cast<std::size_t>(made_by[between])] : nullptr;
    if (!first || !is_sum(*first) || !are_neighbours(graph, *first, node, low)) return out.keep(std::move(node));
    Ints dims = graph[first->inputs[0]].type.shape.sizes();
    dims[low] *= dims[low + 1];
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(low) + 1);
    const ValueId view = out.reshape(first->inputs[0], dims, node.loc);
    dims[low] = 1;
    const ValueId both = out.add(node.op, {view}, {{"axis", static_cast<std::int64_t>(low)}},
                                 graph[view].type.with(Shape(dims)), node.loc);
    out.reshape(both, graph[node.outputs[0]].type.shape.sizes(), node.loc, node.outputs[0]);
    changed = true;
  });
  drop_dead(graph);
  return changed;
}

}  // namespace

void merge_neighbouring_reductions(Graph& graph) {
  while (one_round(graph)) merge_reshapes(graph);
}

}  // namespace tosaic::ethos_u
