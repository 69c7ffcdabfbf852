// SPDX-License-Identifier: Apache-2.0
#include "quantise/weights_on_samples.h"

#include <algorithm>
#include <cstring>

#include "ir/states.h"
#include "quantise/observable.h"
#include "quantise/observe.h"
#include "quantise/observed_program.h"
#include "quantise/quantise_weight.h"
#include "quantise/rounded_weights.h"
#include "quantise/state_samples.h"

namespace tosaic {
namespace {

constexpr std::int64_t most_inputs = 8192;

bool is_same(const Bytes& a, const Bytes& b) {
  return a.data() == b.data() || (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// The rows of layers that have the same weights.
void move_rows(LayersOfRows& from, const Graph& other, LayersOfRows& to, const Graph& graph) {
  const auto named_alike = [&](const WeightKey& a, const WeightKey& b) {
    return graph[std::get<0>(a)].name == other[std::get<0>(b)].name;
  };
  if (to.width() != from.width() || !std::ranges::equal(to.weights, from.weights, named_alike)) return;
  to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
  from.rows = {};
}

}  // namespace

Status WeightsOnSamples::see(Graph graph, const std::vector<std::vector<Tensor>>& samples, std::size_t all,
                             const WeightQuantisation& how, const Running& running) {
  const StatesAsTensors states(graph);
  TOSAIC_TRY(const auto inputs, with_states(graph, samples, states, contents_, running.threads, {}));
  std::vector<RoundedLayer> layers;
  std::vector<char> wanted(graph.values.size(), 0), unseen;
  for (const std::size_t n : layers_to_quantise(graph)) {
    const Node& node = graph.nodes[n];
    const Value& weight = graph[node.inputs[1]];
    if (find(weight) || (how.group != 0 && weight.type.shape.size(1) % how.group != 0)) continue;
    layers.push_back({n, 0, how.bits == 4 ? DType::i4 : DType::i8, false});
    wanted[node.inputs[0]] = 1;
  }
  if (layers.empty()) return {};
  LayerRows rows(graph, layers, all, most_inputs);
  TOSAIC_TRY(Lowered lowered, lower_observable(graph, unseen, {}));
  for (ValueId v = 0; v < wanted.size(); ++v)
    if (unseen[v]) wanted[v] = 0;
  TOSAIC_TRY(ObservedProgram observed, compile_observed(graph, std::move(lowered), wanted, running.threads));
  const cpu::Observer look = [&](ValueId v, const TensorView& content, ThreadPool& pool) {
    const auto found = observed.watchers.find(v);
    if (found == observed.watchers.end() || content.type.dtype != DType::f32) return;
    for (const auto& [value, moves] : found->second) rows.see(value, {content.as<float>(), content.type, moves}, pool);
  };
  for (const std::vector<Tensor>& sample : inputs) {
    if (running.cancelled && running.cancelled()) return error("compile.cancelled", "the compilation was cancelled");
    if (auto run = observed.program.run(sample, &look); !run.ok()) return run.error();
    if (running.ran_one) running.ran_one();
  }
  seen_.push_back({std::move(graph), std::move(rows)});
  return {};
}

void WeightsOnSamples::round(const WeightQuantisation& how, int threads) {
  const auto by_group = [&](ValueId, const Tensor& weight, int, DType dtype) {
    const std::int64_t group = how.group ? how.group : weight.type.shape.size(1);
    const Shape shape{weight.type.shape.elements() / group, group};
    return quantise_weight({{weight.type.dtype, shape, {}}, weight.data}, 0, dtype == DType::i4);
  };
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const Graph& graph = seen_[i].graph;
    for (std::size_t k = i + 1; k < seen_.size(); ++k)
      for (LayersOfRows& layers : seen_[i].rows.layers())
        for (LayersOfRows& more : seen_[k].rows.layers()) move_rows(more, seen_[k].graph, layers, graph);
    for (auto& [key, values] : round_weights(graph, std::move(seen_[i].rows), by_group, threads)) {
      const Value& weight = graph[std::get<0>(key)];
      rounded_.try_emplace(weight.name, Rounded{weight.constant, values});
    }
  }
  seen_.clear();
}

const Tensor* WeightsOnSamples::find(const Value& weight) const {
  const auto found = rounded_.find(weight.name);
  return found != rounded_.end() && is_same(found->second.floats, weight.constant) ? &found->second.values : nullptr;
}

}  // namespace tosaic
