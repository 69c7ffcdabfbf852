// SPDX-License-Identifier: Apache-2.0
#include "quantise/bias_correction.h"

#include <algorithm>
#include <cmath>

#include "execute/executable.h"
#include "ir/tosa_operators.h"
#include "lower/lower.h"
#include "ops/op.h"
#include "quantise/quantise_weight.h"
#include "simd/bulk_loops.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

constexpr std::size_t weight_operand = 1, bias_operand = 2;

// W - Wq x scale.
Bytes rounded_away(const Tensor& weight, const Tensor& quantised) {
  const Bytes floats = converted({weight.type, weight.data.data()}, DType::f32);
  const std::span<const float> x = floats.as<float>();
  const std::span<const std::int8_t> q = quantised.data.as<std::int8_t>();
  const Scales& scales = *quantised.type.scales;
  float* to = nullptr;
  Bytes difference = Bytes::fresh(x.size(), to);
  std::size_t inner = x.size();
  if (scales.axis >= 0) {
    inner = 1;
    for (int d = scales.axis + 1; d < weight.type.rank(); ++d)
      inner *= static_cast<std::size_t>(weight.type.shape.size(d));
  }
  for (std::size_t first = 0, run = 0; first < x.size(); first += inner, ++run) {
    const auto scale = static_cast<float>(scales.scale[run % scales.scale.size()]);
    for (std::size_t i = first; i < first + inner; ++i) to[i] = x[i] - static_cast<float>(q[i]) * scale;
  }
  return difference;
}

// What the layer gives with `weight` and no bias.
Result<Tensor> run_layer(const Graph& graph, const Node& node, const Tensor& x, const Tensor& weight) {
  Graph layer;
  Node call = node;
  call.inputs = {layer.add_value("x", x.type), layer.add_value("weight", weight.type, weight.data), no_value};
  layer.inputs = {call.inputs[0]};
  const Value& y = graph[node.outputs[0]];
  call.outputs = {layer.add_value("y", {DType::f32, y.type.shape, {}})};
  layer.outputs = call.outputs;
  layer.nodes = {std::move(call)};
  TOSAIC_TRY(Lowered lowered, lower(layer));
  tidy(lowered.graph);
  TOSAIC_TRY(execute::Executable program, execute::Executable::of_lowering(std::move(lowered.graph), {.threads = 1}));
  TOSAIC_TRY(std::vector<Tensor> results, program.run({x}));
  return std::move(results[0]);
}

// The mean of each channel of a layer's result: N, C, spatial dims of a convolution; the last dim of a linear layer.
std::vector<double> mean_by_channel(const Tensor& y, int weight_rank) {
  const Shape& shape = y.type.shape;
  const int channel_dim = shape.rank() + 1 - weight_rank;
  const auto channels = static_cast<std::size_t>(shape.size(channel_dim));
  std::size_t inner = 1;
  for (int d = channel_dim + 1; d < shape.rank(); ++d) inner *= static_cast<std::size_t>(shape.size(d));
  const std::span<const float> values = y.data.as<float>();
  std::vector<double> mean(channels, 0);
  for (std::size_t first = 0, run = 0; first < values.size(); first += inner, ++run)
    for (std::size_t i = first; i < first + inner; ++i) mean[run % channels] += values[i];
  for (double& m : mean) m *= static_cast<double>(channels) / static_cast<double>(values.size());
  return mean;
}

}  // namespace

bool takes_bias(const Graph& graph, const Node& node, const PlannedWeight& weight) {
  const auto& arguments = find_aten(node.op).schema->arguments;
  if (weight.operand != weight_operand || arguments.size() <= bias_operand) return false;
  if (arguments[weight_operand].name != "weight" || arguments[bias_operand].name != "bias") return false;
  if (node.inputs[0] == no_value || graph[node.inputs[0]].is_constant()) return false;
  const ValueId bias = node.inputs.size() > bias_operand ? node.inputs[bias_operand] : no_value;
  return bias == no_value || graph[bias].is_constant();
}

OperandMeans::OperandMeans(const Graph& graph, const QuantisationPlan& plan) {
  for (const PlannedWeight& weight : plan.weights) {
    const Node& node = graph.nodes[weight.node];
    if (takes_bias(graph, node, weight)) seen_.try_emplace(node.inputs[0]);
  }
}

void OperandMeans::see(ValueId v, const TensorType& type, std::span<const float> x, const std::vector<Move>& moves,
                       ThreadPool& pool) {
  const auto found = seen_.find(v);
  if (found == seen_.end()) return;
  Seen& seen = found->second;
  if (seen.samples > 0 && x.size() != seen.count) return;  // a table that the tensor's elements are chosen from
  if (seen.samples++ == 0) {
    seen.type = type;
    seen.moves = moves;
    seen.count = x.size();
    seen.first = Bytes::copy(x.data(), x.size_bytes());
    return;
  }
  const bool second = seen.samples == 2;
  if (second) seen.sum.reset(new double[seen.count]);  // written below
  const float* first = seen.first.as<float>().data();
  constexpr std::size_t block = 1 << 15;
  pool.run(static_cast<std::int64_t>((x.size() + block - 1) / block), [&](std::int64_t task, int) {
    const std::size_t at = static_cast<std::size_t>(task) * block, count = std::min(block, x.size() - at);
    if (second) std::copy_n(first + at, count, seen.sum.get() + at);
    simd::bulk_loops().add(x.data() + at, count, seen.sum.get() + at);
  });
  if (second) seen.first = {};
}

void OperandMeans::rename(const std::map<ValueId, ValueId>& now) {
  std::map<ValueId, Seen> renamed;
  for (auto& [v, seen] : seen_)
    if (const auto it = now.find(v); it != now.end()) renamed.emplace(it->second, std::move(seen));
  seen_ = std::move(renamed);
}

std::optional<Tensor> OperandMeans::mean_of(ValueId v) const {
  const auto found = seen_.find(v);
  if (found == seen_.end() || found->second.samples == 0) return std::nullopt;
  const Seen& seen = found->second;
  Tensor mean{{DType::f32, seen.type.shape, {}}, seen.first};
  if (seen.sum) {
    float* to = nullptr;
    mean.data = Bytes::fresh(seen.count, to);
    simd::bulk_loops().divide(seen.sum.get(), seen.count, static_cast<double>(seen.samples), to);
  }
  if (!simd::bulk_loops().extremes(mean.data.as<float>().data(), seen.count).all_finite) return std::nullopt;
  for (const Move& move : seen.moves) {
    Graph one;
    Node node = move.node;
    node.inputs = {one.add_value("x", mean.type, mean.data)};
    mean.type.shape = move.to.shape;
    if (node.op == tosa::op::transpose) {
      node.outputs = {one.add_value("y", mean.type)};
      mean.data = *tosa::constant_result(one, node, *tosa::find(node.op), mean.type);
    }
  }
  return mean;
}

// Of one layer; empty: it has none, or no bias could take it back.
static Result<std::vector<double>> bias_shift(const Graph& graph, const PlannedWeight& planned,
                                              const OperandMeans& means, const QuantiseWeight& quantise_one) {
  const Node& node = graph.nodes[planned.node];
  if (!takes_bias(graph, node, planned)) return std::vector<double>();
  const std::optional<Tensor> x = means.mean_of(node.inputs[0]);
  if (!x || x->type.shape != graph[node.inputs[0]].type.shape) return std::vector<double>();
  const Value& w = graph[node.inputs[weight_operand]];
  const Tensor weight{w.type, w.constant};
  const Tensor quantised =
      quantise_one(node.inputs[weight_operand], weight, planned.axis, planned.four_bits ? DType::i4 : DType::i8);
  Bytes away = rounded_away(weight, quantised);  // before the type, as above
  const Tensor difference{{DType::f32, w.type.shape, {}}, std::move(away)};
  TOSAIC_TRY(const Tensor y, run_layer(graph, node, *x, difference));
  std::vector<double> shift = mean_by_channel(y, w.type.rank());
  if (!std::ranges::all_of(shift, [](double s) { return std::isfinite(s); })) shift.clear();
  return shift;
}

Result<BiasShifts> find_bias_shifts(const Graph& graph, const QuantisationPlan& plan, const OperandMeans& means,
                                    const QuantiseWeight& quantise_one, int threads) {
  std::vector<Result<std::vector<double>>> found(plan.weights.size(), std::vector<double>());
  ThreadPool::shared(threads).run(static_cast<std::int64_t>(found.size()), [&](std::int64_t i, int) {
    const auto n = static_cast<std::size_t>(i);
    found[n] = bias_shift(graph, plan.weights[n], means, quantise_one);
  });
  BiasShifts shifts;
  for (std::size_t n = 0; n < found.size(); ++n) {
    TOSAIC_TRY(std::vector<double> shift, std::move(found[n]));
    if (!shift.empty()) shifts[graph.nodes[plan.weights[n].node].outputs[0]] = std::move(shift);
  }
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
    if (bias != no_value)
      for (std::size_t i = 0; i < corrected.size(); ++i)
        corrected[i] += element_as_double(graph[bias].type.dtype, graph[bias].constant.data(), i);
    const std::string name = bias != no_value ? graph[bias].name : graph[node.outputs[0]].name + ".bias";
    bias = graph.add_value(name + ".corrected", {DType::f32, Shape{static_cast<std::int64_t>(corrected.size())}, {}},
                           constant_bytes(DType::f32, std::span<const double>(corrected)));
  }
}

}  // namespace tosaic
