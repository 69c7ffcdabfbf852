// SPDX-License-Identifier: Apache-2.0
#include "plan/raise_definitions.h"

#include <algorithm>
#include <set>

#include "ops/definitions/extension.h"
#include "plan/match.h"
#include "plan/uses.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

class Raise {
 public:
  Raise(Graph& graph, const std::function<bool(const Graph&, const Node&)>& takes, std::span<const ValueId> observed)
      : graph_(graph),
        takes_(takes),
        uses_(graph, observed),
        steps_(steps_from_reductions(graph, observed)),
        gone_(graph.nodes.size(), false) {
    for (const Node& node : graph.nodes)
      if (tosa::is_reduction(node.op) && graph[node.inputs[0]].type.shape.is_static())
        reduced_.insert(graph[node.inputs[0]].type.shape.elements());
  }

  // From the last node on: a norm's bias comes after its weight.
  bool run() {
    if (reduced_.empty()) return false;
    for (std::size_t n = graph_.nodes.size(); n-- > 0;)
      if (!gone_[n]) raise(graph_.nodes[n]);
    if (!changed_) return false;
    std::size_t at = 0;
    std::erase_if(graph_.nodes, [&](const Node&) { return gone_[at++]; });
    return true;
  }

 private:
  // To the operator that stands for most nodes: a layer norm is an RMS norm of what its mean is subtracted from.
  void raise(Node& last) {
    if (!follows_reduction(last)) return;
    const auto ending = ending_of(last);
    if (!ending) return;
    std::optional<Node> best;
    std::set<std::uint32_t> stands_for;
    const auto patterns = extension::patterns(*ending);
    for (const extension::Pattern& pattern : *patterns) {
      auto found = match(pattern.definition, graph_, uses_.producer, last.outputs[0]);
      if (!found || found->nodes.size() <= stands_for.size()) continue;
      Node raised{pattern.node.op, {}, pattern.node.attrs, {}, last.loc, {}};
      for (ValueId operand : pattern.node.inputs) raised.inputs.push_back(found->value[operand]);
      for (ValueId result : pattern.node.outputs) raised.outputs.push_back(found->value[result]);
      if (!is_unseen(found->nodes, raised.outputs, last)) continue;
      if (extension::verify_node(tosa::View(graph_, raised)) || !takes_(graph_, raised)) continue;
      best = std::move(raised);
      stands_for = std::move(found->nodes);
    }
    if (!best) return;
    for (std::uint32_t n : stands_for) gone_[n] = &graph_.nodes[n] != &last;
    last = *std::move(best);
    changed_ = true;
  }

  // How many nodes stand between each value and the nearest reduction before it that no seen value hides.
  static std::vector<int> steps_from_reductions(const Graph& graph, std::span<const ValueId> observed) {
    constexpr int far = 1 << 20;
    std::vector<int> steps(graph.values.size(), far);
    std::vector<bool> seen(graph.values.size(), false);
    for (ValueId v : observed) seen[v] = true;
    for (const Node& node : graph.nodes) {
      int least = tosa::is_reduction(node.op) ? -1 : far;
      for (ValueId v : node.inputs)
        if (v != no_value && !seen[v]) least = std::min(least, steps[v]);
      for (ValueId v : node.outputs)
        if (v != no_value) steps[v] = least + 1;
    }
    return steps;
  }

  // May a definition that holds a reduction end here? To look for it takes its time, and where a program is calibrated,
  // nearly all of its values are seen. What ends in integers has several results, and each of them may be seen.
  bool follows_reduction(const Node& last) const {
    constexpr int most = 16;  // the longest that there is has 8
    const ValueId v = last.outputs.empty() ? no_value : last.outputs[0];
    return v != no_value && (!is_float(graph_[v].type.dtype) || steps_[v] <= most);
  }

  // nullopt: no definition ends so.
  std::optional<extension::Ending> ending_of(const Node& last) const {
    if (last.outputs.size() != 1 || std::ranges::find(last.inputs, no_value) != last.inputs.end()) return std::nullopt;
    extension::Ending ending{last.op, graph_[last.outputs[0]].type, {}, {}};
    for (ValueId v : last.inputs) {
      ending.operands.push_back(graph_[v].type);
      ending.viewed.push_back(graph_[skip_views(graph_, uses_.producer, v)].type);
    }
    const auto is_static = [](const TensorType& type) { return type.shape.is_static(); };
    const auto is_reduced = [&](const TensorType& type) { return reduced_.contains(type.shape.elements()); };
    if (!is_static(ending.result) || !std::ranges::all_of(ending.operands, is_static) ||
        !std::ranges::all_of(ending.viewed, is_static))
      return std::nullopt;
    if (!is_reduced(ending.result) && std::ranges::none_of(ending.operands, is_reduced)) return std::nullopt;
    return ending;
  }

  // Do the nodes serve only each other, but for results, and these only what comes after the last node?
  bool is_unseen(const std::set<std::uint32_t>& nodes, const std::vector<ValueId>& results, const Node& last) const {
    return std::ranges::all_of(nodes, [&](std::uint32_t n) {
      const ValueId v = uses_.node(n).outputs[0];
      const bool result = std::ranges::find(results, v) != results.end();
      return (result || !uses_.visible[v]) && std::ranges::all_of(uses_.users[v], [&](auto user) {
               return nodes.contains(user) || (result && &uses_.node(user) > &last);
             });
    });
  }

  Graph& graph_;
  const std::function<bool(const Graph&, const Node&)>& takes_;
  const Uses uses_;                 // of the graph as it was: nodes stay in their places until the end
  const std::vector<int> steps_;    // by value
  std::vector<bool> gone_;          // nodes that another one stands for
  std::set<std::int64_t> reduced_;  // elements of what is reduced
  bool changed_ = false;
};

}  // namespace

bool raise_definitions(Graph& graph, const std::function<bool(const Graph& graph, const Node& node)>& takes,
                       std::span<const ValueId> observed) {
  return Raise(graph, takes, observed).run();
}

}  // namespace tosaic::plan
