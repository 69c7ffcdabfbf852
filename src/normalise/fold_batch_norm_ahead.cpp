// SPDX-License-Identifier: Apache-2.0
// An inference batch norm that no convolution stands before (after an activation, or first in the program) is part of
// the layers after it, y = g * x + t in channel c:
//   linear(y) = sum_c w_c * (g_c * x_c + t_c) + bias = linear(x; w * g) + (bias + sum_c w_c * t_c)
// as are convolutions, where no zeros stand around y, which are none around x. Calls between the two that keep the form
// (views, means) are made on x.
#include <algorithm>
#include <cmath>
#include <span>

#include "base/parallel.h"
#include "ir/provenance.h"
#include "ir/tosa_operators.h"
#include "normalise/channel_affine.h"
#include "normalise/normalise.h"
#include "ops/lowering/weight.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// A layer that reads what is of that form.
struct Layer {
  std::size_t node;
  ChannelAffine operand;
};

// How many times the least the greatest is; channels of nothing but the offset cost no weight anything.
double unlikeness(const std::vector<double>& gains) {
  double least = INFINITY, most = 0;
  for (const double gain : gains) {
    if (gain != 0) least = std::min(least, std::fabs(gain));
    most = std::max(most, std::fabs(gain));
  }
  return most == 0 ? 1 : most / least;
}

bool pads_with_zeros(const Trial& layer) {
  return std::ranges::any_of(layer.graph.nodes, [](const Node& node) {
    if (node.op == tosa::op::pad) return true;
    const auto* pads =
        std::get_if<std::vector<std::int64_t>>(node.attrs.find("pad") ? node.attrs.find("pad") : nullptr);
    return pads && std::ranges::any_of(*pads, [](std::int64_t p) { return p != 0; });
  });
}

class Ahead {
 public:
  explicit Ahead(Graph& graph) : graph_(graph), read_by_(consumers(graph)), is_output_(graph.values.size(), 0) {
    for (ValueId v : graph.outputs) is_output_[v] = 1;
  }

  // All that reads v, which is of the form, if it can take it; what is found is added to `layers`.
  bool find_layers(ValueId v, const ChannelAffine& affine, std::vector<Layer>& layers) const {
    if (is_output_[v] || read_by_[v].empty()) return false;
    for (const std::uint32_t n : read_by_[v]) {
      const Node& reader = graph_.nodes[n];
      if (reader.inputs[0] != v || std::ranges::count(reader.inputs, v) != 1 || !reader.regions.empty()) return false;
      if (takes(reader, affine)) {
        layers.push_back({n, affine});
        continue;
      }
      const auto after = affine_after(graph_, reader, affine);
      if (!after || !only_first_result(reader) || !find_layers(reader.outputs[0], *after, layers)) return false;
    }
    return true;
  }

  void fold(const Layer& layer, const Node& norm) {
    Node& node = graph_.nodes[layer.node];
    const Value weight = graph_[node.inputs[1]];
    const std::vector<double>&gain = layer.operand.gain, &offset = layer.operand.offset;
    const auto outputs = static_cast<std::size_t>(weight.type.shape.size(0)),
               inputs = static_cast<std::size_t>(weight.type.shape.size(1)), groups = gain.size() / inputs;
    const std::span<const float> w = weight.constant.as<float>();
    const std::size_t taps = w.size() / (outputs * inputs);
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != no_value;
    std::vector<double> sums = has_bias ? reals_of(graph_[node.inputs[2]]) : std::vector<double>(outputs, 0);
    float* scaled = nullptr;
    const Bytes folded = Bytes::fresh(w.size(), scaled);
    in_parallel(outputs, (1 << 17) / (inputs * taps) + 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t o = first; o < last; ++o)
        for (std::size_t i = 0; i < inputs; ++i) {
          const std::size_t channel = o / (outputs / groups) * inputs + i, run = (o * inputs + i) * taps;
          for (std::size_t t = run; t < run + taps; ++t) {
            scaled[t] = static_cast<float>(w[t] * gain[channel]);
            sums[o] += w[t] * offset[channel];
          }
        }
    });
    node.inputs.resize(std::max<std::size_t>(node.inputs.size(), 3), no_value);
    node.inputs[1] = graph_.add_value(weight.name + ".folded", weight.type, folded);
    if (has_bias || !layer.operand.only_scales())
      node.inputs[2] = graph_.add_value(weight.name + ".bias", {DType::f32, Shape{weight.type.shape.size(0)}, {}},
                                        Bytes::of(std::vector<float>(sums.begin(), sums.end())));
    node.loc = joined(node.loc, norm.loc);
  }

 private:
  bool only_first_result(const Node& node) const {
    return std::ranges::all_of(node.outputs.begin() + 1, node.outputs.end(),
                               [&](ValueId v) { return v == no_value || (read_by_[v].empty() && !is_output_[v]); });
  }

  bool is_f32_constant(ValueId v) const { return graph_[v].is_constant() && graph_[v].type.dtype == DType::f32; }

  // A layer whose weight [results, operands of a group, kernel] can.
  bool takes(const Node& node, const ChannelAffine& affine) const {
    const FoundOp found = find_aten(node.op);
    if (!found.rule->accumulates || !found.schema->argument("weight") || weight_axis(*found.schema, node.attrs) != 0 ||
        node.inputs.size() < 2 || node.inputs[1] == no_value || !is_f32_constant(node.inputs[1]))
      return false;
    if (node.inputs.size() > 2 && node.inputs[2] != no_value && !is_f32_constant(node.inputs[2])) return false;
    const auto trial = try_node(graph_, node);
    if (!trial.ok() || (!affine.only_scales() && pads_with_zeros(*trial))) return false;
    const Shape &x = graph_[node.inputs[0]].type.shape, &weight = graph_[node.inputs[1]].type.shape;
    const std::int64_t groups = node.attrs.get_or<std::int64_t>("groups", 1);
    return weight.rank() >= 2 && !weight.is_empty() && affine.dim == x.rank() - (weight.rank() - 1) &&
           std::ssize(affine.gain) == weight.size(1) * groups;
  }

  Graph& graph_;
  std::vector<std::vector<std::uint32_t>> read_by_;
  std::vector<char> is_output_;
};

}  // namespace

void fold_batch_norm_ahead(Graph& graph, double most_unlike_gains) {
  Ahead ahead(graph);
  std::vector<ValueId> instead(graph.values.size(), no_value);
  for (Node& norm : graph.nodes) {
    if (!is_batch_norm(norm.op) || norm.inputs[0] == no_value || graph[norm.inputs[0]].is_constant()) continue;
    const auto affine = channel_affine(graph, norm);
    std::vector<Layer> layers;
    if (!affine || !(unlikeness(affine->gain) <= most_unlike_gains) || !try_node(graph, norm).ok() ||
        !ahead.find_layers(norm.outputs[0], *affine, layers))
      continue;
    for (const Layer& layer : layers) ahead.fold(layer, norm);
    instead[norm.outputs[0]] = norm.inputs[0];
    norm.op = {};
  }
  for (Node& node : graph.nodes)
    for (ValueId& v : node.inputs)
      if (v != no_value && v < instead.size() && instead[v] != no_value) v = instead[v];
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.none(); });
  drop_dead(graph);
}

}  // namespace tosaic
