// SPDX-License-Identifier: Apache-2.0
#include "normalise/body_work.h"

#include <fmt/format.h>
#include <algorithm>

#include "lower/lower.h"

namespace tosaic {
namespace {

// A delegate's boundary costs a call and copies; below this, computing a branch in vain costs less.
constexpr double little_work = 1e6;

double elements(const Graph& graph, ValueId v) {
  return v == no_value ? 0 : static_cast<double>(graph[v].type.shape.elements());
}

// Products and sums of a convolution or matrix product, the elements that any other node touches.
double work_of(const Graph& graph, const Node& node) {
  double work = 0;
  for (ValueId v : node.inputs)
    if (v == no_value || !graph[v].is_constant()) work = std::max(work, elements(graph, v));
  for (ValueId v : node.outputs) work = std::max(work, elements(graph, v));
  const tosa::Op* op = tosa::find(node.op);
  if (!op || !op->accumulates || node.inputs.size() < 2 || graph[node.inputs[1]].type.rank() < 3) return work;
  const Shape &weight = graph[node.inputs[1]].type.shape, &result = graph[node.outputs[0]].type.shape;
  const double columns = static_cast<double>(result.size(result.rank() - 1)),
               matrices = weight.rank() == 3 ? static_cast<double>(weight.size(0)) : 1;
  return std::max(work, elements(graph, node.outputs[0]) * elements(graph, node.inputs[1]) / (columns * matrices));
}

double work_of(const Graph& graph) {
  double work = 0;
  for (const Node& node : graph.nodes) {
    work += work_of(graph, node);
    for (const Graph& body : node.regions) work += work_of(body);
  }
  return work;
}

// The standard leaves open what a look-up beyond the table gives: it is refused at run.
bool looks_up(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    const tosa::Op* op = tosa::find(node.op);
    for (std::size_t i = 0; op && i < std::min(op->inputs.size(), node.inputs.size()); ++i)
      if (op->inputs[i].name == "indices" && !graph[node.inputs[i]].is_constant()) return true;
    return false;
  });
}

}  // namespace

std::optional<std::string> not_worth_computing_both(const Graph& branch) {
  const auto lowered = lower(branch, {.fold = false});
  if (!lowered.ok()) return "not all of a branch can be lowered to TOSA";
  if (looks_up(lowered->graph)) return "a branch looks up at indices that may be right only when it is taken";
  if (const double work = work_of(lowered->graph); work > little_work)
    return fmt::format("a branch takes {:.0f} million products, sums or elements", std::ceil(work / 1e6));
  return std::nullopt;
}

}  // namespace tosaic
