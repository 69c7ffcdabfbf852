// SPDX-License-Identifier: Apache-2.0
#include "quantise/bias_correction.h"

#include <algorithm>
#include <cmath>

#include "ops/bias_room.h"
#include "ops/op.h"
#include "quantise/as_f32.h"
#include "quantise/quantise_weight.h"
#include "simd/bulk_loops.h"

namespace tosaic {

constexpr std::size_t weight_operand = 1, bias_operand = 2;

bool takes_bias(const Graph& graph, const PlannedWeight& weight) {
  const Node& node = graph.nodes[weight.node];
  const auto& arguments = find_aten(node.op).schema->arguments;
  if (weight.operand != weight_operand || arguments.size() <= bias_operand) return false;
  if (arguments[weight_operand].name != "weight" || arguments[bias_operand].name != "bias") return false;
  if (node.inputs[0] == no_value || graph[node.inputs[0]].is_constant()) return false;
  const ValueId bias = node.inputs.size() > bias_operand ? node.inputs[bias_operand] : no_value;
  return bias == no_value || graph[bias].is_constant();
}

std::optional<Window> corrected_window(const Graph& graph, const PlannedWeight& weight) {
  if (!takes_bias(graph, weight)) return std::nullopt;
  const Node& node = graph.nodes[weight.node];
  auto window = window_of(graph, node);
  if (!window || node.inputs.size() <= bias_operand || node.inputs[bias_operand] == no_value) return window;
  const Shape& shape = graph[node.inputs[weight_operand]].type.shape;
  const std::int64_t results = window->transposed ? shape.size(1) * window->groups : shape.size(0);
  if (graph[node.inputs[bias_operand]].type.shape.elements() != results)
    return std::nullopt;  // refused where it is lowered
  return window;
}

LayerMeans means_wanted(const Graph& graph, const QuantisationPlan& plan, std::size_t samples) {
  LayerMeans means(samples);
  for (const PlannedWeight& planned : plan.weights)
    if (const auto window = corrected_window(graph, planned)) means.want(*window);
  return means;
}

// Of one layer, E[(W - Wq) x] by channel; empty: it has none, or no bias could take it back.
static std::vector<double> bias_shift(const Graph& graph, const PlannedWeight& planned, const LayerMeans& means,
                                      const QuantiseWeight& quantise_one) {
  const auto window = corrected_window(graph, planned);
  const std::vector<double> x = window ? means.of(*window) : std::vector<double>();
  if (x.empty()) return {};
  const ValueId w = graph.nodes[planned.node].inputs[weight_operand];
  const Tensor weight{graph[w].type, graph[w].constant};
  const Tensor quantised = quantise_one(w, weight, planned.axis, planned.four_bits ? DType::i4 : DType::i8);
  const Bytes floats = as_f32(weight);
  const std::span<const std::int8_t> values = quantised.data.as<std::int8_t>();
  const std::vector<double>& scales = quantised.type.scales->scale;
  // Runs of the weight that belong to one channel of the result: all of its inputs, or what an input's elements go to.
  const Shape& shape = weight.type.shape;
  const auto groups = static_cast<std::size_t>(window->groups), channels = static_cast<std::size_t>(window->channels()),
             taps = x.size() / channels, rows = static_cast<std::size_t>(shape.size(0)),
             columns = static_cast<std::size_t>(shape.size(1)), run = window->transposed ? taps : columns * taps;
  std::vector<double> shift(window->transposed ? columns * groups : rows, 0);
  for (std::size_t r = 0; r * run < values.size(); ++r) {
    const std::size_t from = window->transposed ? r / columns : r / (rows / groups) * columns;  // of x's channels
    const std::size_t to = window->transposed ? from / (channels / groups) * columns + r % columns : r;
    shift[to] += simd::bulk_loops().lost(floats.as<float>().data() + r * run, values.data() + r * run, run,
                                         scales[r % scales.size()], x.data() + from * taps);
  }
  if (!std::ranges::all_of(shift, [](double s) { return std::isfinite(s); })) shift.clear();
  return shift;
}

BiasShifts find_bias_shifts(const Graph& graph, const QuantisationPlan& plan, const LayerMeans& means,
                            const QuantiseWeight& quantise_one, int threads) {
  std::vector<std::vector<double>> found(plan.weights.size());
  ThreadPool::shared(threads).run(static_cast<std::int64_t>(found.size()), [&](std::int64_t i, int) {
    const auto n = static_cast<std::size_t>(i);
    found[n] = bias_shift(graph, plan.weights[n], means, quantise_one);
  });
  BiasShifts shifts;
  for (std::size_t n = 0; n < found.size(); ++n)
    if (!found[n].empty()) shifts[graph.nodes[plan.weights[n].node].outputs[0]] = std::move(found[n]);
  return shifts;
}

void average_with(BiasShifts& mean, const BiasShifts& more, int n) {
  std::erase_if(mean, [&](const auto& shift) { return !more.contains(shift.first); });
  for (auto& [layer, shift] : mean)
    for (std::size_t c = 0; c < shift.size(); ++c) shift[c] += (more.at(layer)[c] - shift[c]) / n;
}

void correct_biases(Graph& graph, const QuantisationPlan& plan, const BiasShifts& shifts) {
  for (const PlannedWeight& planned : plan.weights) {
    Node& node = graph.nodes[planned.node];
    const auto shift = node.outputs.empty() ? shifts.end() : shifts.find(node.outputs[0]);
    if (shift == shifts.end() || planned.operand != weight_operand) continue;
    if (!graph[node.inputs[weight_operand]].type.scales) continue;  // stays float
    node.inputs.resize(std::max(node.inputs.size(), bias_operand + 1), no_value);
    ValueId& bias = node.inputs[bias_operand];
    std::vector<double> corrected = shift->second;
    if (bias != no_value && graph[bias].type.shape.elements() != static_cast<std::int64_t>(corrected.size())) continue;
    if (bias != no_value)
      for (std::size_t i = 0; i < corrected.size(); ++i)
        corrected[i] += element_as_double(graph[bias].type.dtype, graph[bias].constant.data(), i);
    const std::string name = bias != no_value ? graph[bias].name : graph[node.outputs[0]].name + ".bias";
    bias = graph.add_value(name + ".corrected", {DType::f32, Shape{static_cast<std::int64_t>(corrected.size())}, {}},
                           constant_bytes(DType::f32, std::span<const double>(corrected)));
  }
}

void leave_biases_room(Graph& graph, const QuantisationPlan& plan) {
  for (const PlannedWeight& planned : plan.weights) {
    if (!takes_bias(graph, planned)) continue;
    Node& node = graph.nodes[planned.node];
    if (node.inputs.size() <= bias_operand || node.inputs[bias_operand] == no_value) continue;
    const ValueId w = node.inputs[weight_operand];
    const TensorType &x = graph[node.inputs[0]].type, &weight = graph[w].type;
    const Value& bias = graph[node.inputs[bias_operand]];
    if (!x.quantised() || !graph[w].is_constant() || !weight.quantised() || bias.type.dtype != DType::f32) continue;
    const auto biases = bias.type.shape.elements();
    if (biases == 0 || (!weight.scales->per_tensor() && biases != std::ssize(weight.scales->scale))) continue;
    const std::vector<double> growth =
        growth_for_biases({bias.type, bias.constant}, x.scales->scale[0], x.dtype, *weight.scales);
    if (std::ranges::all_of(growth, [](double g) { return g == 1; })) continue;
    Tensor grown = with_larger_steps({weight, graph[w].constant}, growth);
    node.inputs[weight_operand] = graph.add_value(graph[w].name, grown.type, std::move(grown.data));
  }
}

}  // namespace tosaic
