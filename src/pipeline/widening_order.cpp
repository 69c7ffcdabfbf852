// SPDX-License-Identifier: Apache-2.0
#include "pipeline/widening_order.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

using Names = std::set<std::string>;

double at(const std::map<std::string, double>& costs, const std::string& name) {
  const auto found = costs.find(name);
  return found == costs.end() ? 0 : found->second;
}

class Readers {
 public:
  Readers(const Graph& graph, const std::vector<ExportedNode>& exported) : graph_(graph), consumers_(consumers(graph)) {
    for (const ExportedNode& node : exported) names_.insert(node.name);
    leaves_.assign(graph.values.size(), false);
    for (ValueId v : graph.outputs) leaves_[v] = true;
  }

  // What has to compute with 16 bits, so that nobody sees the result of this call in 8. nullopt: it has no name.
  std::optional<Names> needed(const RoundingNoise& tensor) const {
    Names names;
    const bool leaves = add(tensor.value, names);
    if (unnamed(names)) return std::nullopt;
    if (tensor.calls.empty() || (!leaves && names.size() == 1)) return names;
    names.insert(name_of(tensor.calls.front()));
    if (unnamed(names)) return std::nullopt;
    return names;
  }

  // Of the layer's own calls.
  Names names_of(const RoundingNoise& tensor) const {
    Names names;
    for (std::size_t n : tensor.calls) names.insert(name_of(n));
    return names;
  }

 private:
  std::string name_of(std::size_t n) const {
    const LocRef& loc = graph_.nodes[n].loc;
    return loc && names_.contains(loc->name) ? loc->name : "";
  }
  static bool unnamed(const Names& names) { return names.contains(""); }

  // The calls that read it, and those that read what only passes its values on. Does it leave the program?
  bool add(ValueId v, Names& names) const {
    bool leaves = leaves_[v];
    for (std::uint32_t n : consumers_[v]) {
      const Node& reader = graph_.nodes[n];
      if (reader.op.is_conversion()) {  // to what leaves the program, or is float
        leaves = true;
        continue;
      }
      names.insert(name_of(n));
      if (find_aten(reader.op).rule->passes_values)
        for (ValueId y : reader.outputs)
          if (y != no_value) leaves |= add(y, names);
    }
    return leaves;
  }

  const Graph& graph_;
  const std::vector<std::vector<std::uint32_t>> consumers_;
  std::set<std::string> names_;
  std::vector<bool> leaves_;
};

}  // namespace

std::vector<TunedTensor> widening_order(const Graph& quantised, const std::vector<RoundingNoise>& noises,
                                        const std::vector<ExportedNode>& exported, const CallCosts& costs) {
  struct Candidate {
    const RoundingNoise* tensor;
    Names needed;
  };
  const Readers readers(quantised, exported);
  double all = 0;
  std::vector<Candidate> left;
  for (const RoundingNoise& tensor : noises) {
    all += tensor.noise;
    if (auto needed = readers.needed(tensor); needed && tensor.noise > 0) left.push_back({&tensor, *std::move(needed)});
  }
  std::map<std::string, double> cost_of_node = costs.of_node;
  for (const RoundingNoise& tensor : noises) {  // a layer's cost is told of any of its calls
    double sum = 0;
    for (const std::string& name : readers.names_of(tensor)) sum += at(costs.of_node, name);
    for (const std::string& name : readers.names_of(tensor)) cost_of_node[name] = sum;
  }
  const auto cost_of = [&](const std::string& name) { return costs.all > 0 ? at(cost_of_node, name) / costs.all : 0; };
  Names wide;
  std::vector<TunedTensor> order;
  while (!left.empty()) {
    const auto price = [&](const Candidate& c) {
      double sum = 1e-3;  // what costs nothing itself still needs copies
      for (const std::string& name : c.needed)
        if (!wide.contains(name)) sum += cost_of(name);
      return sum;
    };
    const auto gain = [&](const Candidate& c) { return c.tensor->noise / price(c); };
    const auto best = std::ranges::max_element(left, {}, gain);
    TunedTensor next{"", "", {}, best->tensor->noise / all, price(*best)};
    if (best->tensor->calls.empty()) {
      next.op = "input " + quantised[best->tensor->value].name;
    } else if (const LocRef& loc = quantised.nodes[best->tensor->calls.front()].loc) {
      next.op = loc->op;
      next.where = layer_text(loc);
    }
    for (const std::string& name : best->needed)
      if (wide.insert(name).second) next.nodes.push_back(name);
    left.erase(best);
    if (next.nodes.empty() && !order.empty())
      order.back().noise += next.noise;  // they get 16 bits with it
    else
      order.push_back(std::move(next));
  }
  return order;
}

}  // namespace tosaic
