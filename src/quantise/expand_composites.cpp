// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "lower/lower.h"
#include "ops/composer.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

bool is_composite(const Node& node) { return find_aten(node.op).rule->is_composite; }

// Appends the pieces of `node` to `out`, whose values include all of the old graph's. False: not expressible in
// other ATen operators; the node then stays as it is (and stays float).
bool expand(Graph& out, const Node& node, std::vector<char>& inner, KnownBounds& bounds) {
  const auto nodes = out.nodes.size(), values = out.values.size();
  Composer composer(out);
  composer.set_loc(node.loc);
  std::vector<TensorType> declared;
  for (ValueId v : node.outputs) declared.push_back(v == no_value ? TensorType{} : out[v].type);
  try {
    Vals results = lower_call(composer, node.op, composer.values(node.inputs), node.attrs, declared);
    for (Val r : results)
      if (r.id() < values || r.is_constant()) throw Refusal{internal_error("a composite handed back its operand")};
    inner.resize(out.values.size(), 1);
    // The decomposition's last results take the place of the composite's.
    for (std::size_t i = 0; i < node.outputs.size() && i < results.size(); ++i)
      if (node.outputs[i] != no_value)
        for (std::size_t n = nodes; n < out.nodes.size(); ++n) {
          for (ValueId& v : out.nodes[n].inputs)
            if (v == results[i].id()) v = node.outputs[i];
          for (ValueId& v : out.nodes[n].outputs)
            if (v == results[i].id()) v = node.outputs[i];
        }
    if (const auto& said = find_aten(node.op).op->bounds; said && node.outputs[0] != no_value)
      bounds[node.outputs[0]] = *said;
    return true;
  } catch (const Refusal&) {  // stays as it is
  } catch (const UnknownSize&) {}
  out.nodes.resize(nodes);
  out.values.resize(values);
  return false;
}

}  // namespace

Status expand_composites(Graph& graph, std::vector<char>& inner, KnownBounds& bounds, const StaysWhole& whole) {
  inner.resize(graph.values.size(), 0);
  // A result that nobody reads (a norm's 1/deviation) is as much the composite's own as what has no name.
  const std::vector<char> used = used_values(graph);
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value && is_composite(node)) inner[v] = !used[v];
  for (int round = 0; round < 8; ++round) {
    bool any = false;
    Rewriter out(graph);
    for (Node& node : out.nodes()) {
      if (is_composite(node) && !(whole && whole(graph, node)) && expand(graph, node, inner, bounds))
        any = true;
      else
        out.keep(std::move(node));
    }
    if (!any) return {};
  }
  return internal_error("composites expand into each other without end");
}

}  // namespace tosaic
