// SPDX-License-Identifier: Apache-2.0
#include "quantise/equalisable_layers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "quantise/bias_correction.h"

namespace tosaic {
namespace {

class Finder {
 public:
  Finder(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options)
      : graph_(graph), options_(options), readers_(graph.values.size(), 0) {
    for (const Node& node : graph.nodes)
      for (ValueId v : node.inputs)
        if (v != no_value) ++readers_[v];
    for (ValueId v : graph.outputs) ++readers_[v];
    for (const PlannedWeight& planned : plan.weights) planned_.emplace(planned.node, &planned);
    found_.of.resize(graph.values.size());
  }

  EqualisableProgram found() && {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!is_layer(n)) spread(graph_.nodes[n]);
    for (ValueId v : graph_.outputs) make_one(found_.of[v], found_.factors);
    for (const State& state : graph_.states) make_one(found_.of[state.output], found_.factors);
    return std::move(found_);
  }

 private:
  // A layer begins with new factors, and takes back those of what it reads.
  bool is_layer(std::size_t n) {
    const auto planned = planned_.find(n);
    if (planned == planned_.end()) return false;
    auto window = corrected_window(graph_, *planned->second);
    if (!window) return false;
    const Node& node = graph_.nodes[n];
    EqualisableLayer layer;
    layer.planned = planned->second;
    layer.window = *std::move(window);
    layer.weight = node.inputs[1];
    if (node.inputs.size() > 2) layer.bias = node.inputs[2];
    const auto is_own = [&](ValueId v) {
      return readers_[v] == 1 && graph_[v].type.dtype == DType::f32 &&
             (!options_.may_equalise || options_.may_equalise(graph_[v]));
    };
    if (!is_own(layer.weight) || (layer.bias != no_value && !is_own(layer.bias))) return false;
    const int dim = static_cast<int>(layer.window.channel());
    if (const auto& x = found_.of[layer.window.x]; varies(x, found_.factors)) {
      if (x->dim == dim && x->power == 1)
        layer.read = x->by_index;
      else
        make_one(x, found_.factors);
    }
    const auto channels = static_cast<std::size_t>(graph_[node.outputs[0]].type.shape.size(dim));
    layer.made.assign(channels, Factors::one);
    if (layer.planned->axis >= 0) {
      for (Factors::Id& id : layer.made) id = found_.factors.fresh();
      found_.of[node.outputs[0]] = ChannelFactors{dim, layer.made, 1};
    }
    found_.layers.push_back(std::move(layer));
    return true;
  }

  void spread(const Node& node) {
    const auto has = [&](ValueId v) { return v != no_value && varies(found_.of[v], found_.factors); };
    if (std::ranges::none_of(node.inputs, has)) return;
    if (find_aten(node.op).rule->is_magnitude && spread_to_length(node)) return;
    std::optional<Trial> trial;
    if (node.regions.empty())
      if (auto tried = try_node(graph_, node); tried.ok()) trial = *std::move(tried);
    FactorsOfValues of(trial ? trial->graph.values.size() : 0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!has(node.inputs[i])) continue;
      if (trial)
        of[trial->operands[i]] = found_.of[node.inputs[i]];
      else
        make_one(found_.of[node.inputs[i]], found_.factors);
    }
    if (!trial) return;
    spread_factors(trial->graph, of, found_.factors);
    // A pool's lowering may leave out the indices of the largest.
    for (std::size_t i = 0; i < node.outputs.size() && i < trial->results.size(); ++i)
      if (node.outputs[i] != no_value) found_.of[node.outputs[i]] = of[trial->results[i]];
  }

  // A length has its legs' factors, which have to be the same. (What computes it without overflow compares the legs
  // with constants, where factors end.) False: the legs have no such factors.
  bool spread_to_length(const Node& node) {
    const ValueId x = node.inputs[0], y = node.inputs[1], length = node.outputs[0];
    if (x == no_value || y == no_value) return false;
    const auto &a = found_.of[x], &b = found_.of[y];
    const bool alike =
        a && b && a->dim == b->dim && a->power == b->power && graph_[x].type.shape == graph_[y].type.shape;
    if (!alike) return false;
    for (std::size_t i = 0; i < a->by_index.size(); ++i) found_.factors.tie(a->by_index[i], b->by_index[i]);
    found_.of[length] = a;
    return true;
  }

  const Graph& graph_;
  const QuantiseOptions& options_;
  std::vector<std::uint32_t> readers_;  // per value
  std::map<std::size_t, const PlannedWeight*> planned_;
  EqualisableProgram found_;
};

}  // namespace

bool EqualisableProgram::varies(ValueId v) const { return tosaic::varies(of[v], factors); }

bool EqualisableProgram::any() const {
  return std::ranges::any_of(layers, [&](const EqualisableLayer& layer) { return varies(layer.window.x); });
}

EqualisableProgram find_equalisable(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options) {
  return Finder(graph, plan, options).found();
}

}  // namespace tosaic
