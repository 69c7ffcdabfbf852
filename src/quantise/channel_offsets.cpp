// SPDX-License-Identifier: Apache-2.0
#include "quantise/channel_offsets.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "ir/tosa_operators.h"
#include "ops/op.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "quantise/bias_correction.h"
#include "quantise/channel_sizes.h"
#include "quantise/observed_channels.h"

namespace tosaic {
namespace {

// Of the squared steps that are left: less is not worth that floats change in their last digits.
constexpr double worth_it = 0.9;
// Of each channel. The ends of fewer are no ends for other inputs, and centred channels leave each other no room.
constexpr std::int64_t fewest_elements = 128;
constexpr std::size_t enough_samples = 8;

using Offsets = std::vector<double>;  // what is added to each channel; empty: nothing

struct Layer {
  Window window;
  ValueId weight, bias;
};

// Layers with a bias of their own, what they give, and sums of that. What is free may have any offsets: all that read
// it take them back, or are sums that are free.
class Program {
 public:
  Program(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options)
      : graph_(graph), readers_(consumers(graph)), free_(graph.values.size(), 0), in_eight_bits_(plan.quantised) {
    for (ValueId v = 0; v < in_eight_bits_.size(); ++v) in_eight_bits_[v] &= static_cast<char>(!plan.wide[v]);
    find_layers(plan, options);
    std::vector<char> leaves(graph.values.size(), 0);
    for (ValueId v : graph.outputs) leaves[v] = 1;
    for (const State& state : graph.states) leaves[state.output] = 1;
    for (std::size_t n = graph.nodes.size(); n-- > 0;) {
      if (!layers_.contains(n) && !sums_.contains(n)) continue;
      const ValueId y = graph.nodes[n].outputs[0];
      free_[y] = !leaves[y] && !readers_[y].empty() &&
                 std::ranges::all_of(readers_[y], [&](std::size_t reader) { return takes_back(reader, y); });
    }
  }

  bool is_free(ValueId v) const { return free_[v] != 0; }
  const Layer* layer(std::size_t n) const {
    const auto found = layers_.find(n);
    return found == layers_.end() ? nullptr : &found->second;
  }
  const std::map<std::size_t, Layer>& layers() const { return layers_; }
  // The sum that alone reads v.
  const Node* sum_of(ValueId v) const {
    if (readers_[v].size() != 1 || !sums_.contains(readers_[v][0])) return nullptr;
    return &graph_.nodes[readers_[v][0]];
  }
  // The dim of the channels, of all values that are free and get 8 bits.
  std::map<ValueId, int> free_values() const {
    std::map<ValueId, int> found;
    for (const auto& [v, dim] : dims_)
      if (is_free(v) && in_eight_bits_[v]) found.emplace(v, dim);
    return found;
  }

 private:
  void find_layers(const QuantisationPlan& plan, const QuantiseOptions& options) {
    const auto is_constant = [&](ValueId v) { return graph_[v].is_constant() && graph_[v].type.dtype == DType::f32; };
    for (const PlannedWeight& planned : plan.weights) {
      const Node& node = graph_.nodes[planned.node];
      auto window = corrected_window(graph_, planned);
      if (!window || node.inputs.size() < 3 || node.inputs[2] == no_value) continue;
      const ValueId weight = node.inputs[1], bias = node.inputs[2];
      if (!is_constant(weight) || !is_constant(bias) || readers_[bias].size() != 1) continue;
      if (options.may_equalise && !options.may_equalise(graph_[bias])) continue;
      dims_[node.outputs[0]] = static_cast<int>(window->channel());
      layers_.emplace(planned.node, Layer{*std::move(window), weight, bias});
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n)
      if (const Node& node = graph_.nodes[n]; is_sum(node)) {
        dims_[node.outputs[0]] = dims_.at(node.inputs[0]);
        sums_.insert(n);
      }
  }

  // a + b, whose channels stand alike, element for element.
  bool is_sum(const Node& node) const {
    if (node.inputs.size() != 2 || node.outputs.size() != 1 || !find_aten(node.op).rule->adds) return false;
    const auto a = dims_.find(node.inputs[0]), b = dims_.find(node.inputs[1]);
    if (a == dims_.end() || b == dims_.end() || a->second != b->second || a->first == b->first) return false;
    const auto& shape = [&](ValueId v) -> const Shape& { return graph_[v].type.shape; };
    if (shape(a->first) != shape(b->first) || shape(a->first) != shape(node.outputs[0])) return false;
    const auto trial = try_node(graph_, node);
    return trial.ok() && trial->graph.nodes.size() == 1 && trial->graph.nodes[0].op == tosa::op::add;
  }

  bool takes_back(std::size_t reader, ValueId x) const {
    if (const Layer* l = layer(reader)) return l->window.x == x && reads_no_padding(l->window);
    return sums_.contains(reader) && is_free(graph_.nodes[reader].outputs[0]);
  }

  // Padding is zero, whatever the channel was moved by.
  static bool reads_no_padding(const Window& window) {
    if (window.transposed) return false;
    for (std::size_t d = 0; d < window.kernel.size(); ++d) {
      const std::int64_t spans = window.dilation[d] * (window.kernel[d] - 1) + 1,
                         size = window.input[window.channel() + 1 + d];
      if (window.padding[d] != 0 || (size - spans) / window.stride[d] + 1 != window.output[window.channel() + d])
        return false;
    }
    return true;
  }

  const Graph& graph_;
  const std::vector<std::vector<std::uint32_t>> readers_;
  std::vector<char> free_, in_eight_bits_;  // per value
  std::map<std::size_t, Layer> layers_;     // by node
  std::set<std::size_t> sums_;              // nodes
  std::map<ValueId, int> dims_;             // of the channels of what layers and sums give
};

Offsets sum(const Offsets& a, const Offsets& b) {
  if (a.empty() || b.empty()) return a.empty() ? b : a;
  Offsets all = a;
  for (std::size_t c = 0; c < all.size(); ++c) all[c] += b[c];
  return all;
}

// Offsets of what each layer gives, by which the steps of its tensor, and of a sum that it goes into, become smaller.
class Centring {
 public:
  Centring(const Graph& graph, const Program& program, const ObservedChannels& seen)
      : program_(program), seen_(seen), offsets_(graph.values.size()) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.outputs.size() != 1 || node.outputs[0] == no_value || !program.is_free(node.outputs[0])) continue;
      const ValueId y = node.outputs[0];
      if (program.layer(n))
        offsets_[y] = of_layer(y);
      else
        offsets_[y] = sum(of(node.inputs[0]), of(node.inputs[1]));
    }
  }
  const Offsets& of(ValueId v) const { return offsets_[v]; }

 private:
  Offsets of_layer(ValueId y) const {
    if (!known(y)) return {};
    const Node* sum_of_it = program_.sum_of(y);
    Offsets before;  // those that the sum has from its other operand
    if (sum_of_it) before = of(sum_of_it->inputs[sum_of_it->inputs[0] == y ? 1 : 0]);
    const bool counts_sum = sum_of_it && known(sum_of_it->outputs[0]);
    const auto error = [&](const Offsets& offsets) {
      double squares = square(width(y, offsets));
      if (counts_sum) squares += square(width(sum_of_it->outputs[0], sum(before, offsets)));
      return squares;
    };
    std::vector<Offsets> choices{centred(y)};
    if (counts_sum) {
      Offsets rest = centred(sum_of_it->outputs[0]);
      for (std::size_t c = 0; c < before.size(); ++c) rest[c] -= before[c];
      choices.push_back(std::move(rest));
    }
    Offsets best;
    double least = worth_it * error({});
    for (Offsets& choice : choices)
      if (const double e = error(choice); e < least) {
        least = e;
        best = std::move(choice);
      }
    return best;
  }

  bool known(ValueId v) const {
    const auto found = seen_.find(v);
    return found != seen_.end() && found->second.known() && found->second.count() >= fewest_elements;
  }
  Offsets centred(ValueId v) const {
    const ChannelSizes& sizes = seen_.at(v);
    Offsets offsets;
    for (std::size_t c = 0; c < sizes.channels(); ++c) {
      const Range bulk = sizes.bulk(c);
      offsets.push_back(-(bulk.lowest + bulk.highest) / 2);
    }
    return offsets;
  }
  // Of the range of all channels, which holds zero. What calibration clips is left out as well.
  double width(ValueId v, const Offsets& offsets) const {
    const ChannelSizes& sizes = seen_.at(v);
    Range range;
    for (std::size_t c = 0; c < sizes.channels(); ++c) {
      const double offset = offsets.empty() ? 0 : offsets[c];
      const Range bulk = sizes.bulk(c);
      range.include(bulk.lowest + offset);
      range.include(bulk.highest + offset);
    }
    return range.highest - range.lowest;
  }
  static double square(double x) { return x * x; }

  const Program& program_;
  const ObservedChannels& seen_;
  std::vector<Offsets> offsets_;  // per value
};

// What a layer's result becomes larger by, where its operand's channels are moved.
Offsets passed_on(const Graph& graph, const Layer& layer, const Offsets& moved) {
  const Value& weight = graph[layer.weight];
  const std::span<const float> w = weight.constant.as<float>();
  const auto taps = static_cast<std::size_t>(product(layer.window.kernel));
  Offsets found(static_cast<std::size_t>(graph[layer.bias].type.shape.elements()), 0);
  for_each_run(layer.window, weight.type.shape, [&](std::size_t to, std::size_t from, std::size_t run) {
    for (const float element : w.subspan(run * taps, taps)) found[to] += element * moved[from];
  });
  return found;
}

void add(Value& bias, const Offsets& offsets, double sign) {
  const std::span<const float> b = bias.constant.as<float>();
  float* to = nullptr;
  Bytes moved = Bytes::fresh(b.size(), to);
  for (std::size_t i = 0; i < b.size(); ++i) to[i] = static_cast<float>(b[i] + sign * offsets[i]);
  bias.constant = std::move(moved);
}

}  // namespace

Status centre_channels(Graph& graph, const std::vector<char>& inner, const std::vector<std::vector<Tensor>>& samples,
                       const QuantiseOptions& options) {
  if (!options.equalisation || options.shares_weights) return {};
  const Program program(graph, plan_quantisation({graph, inner}, options), options);
  const std::map<ValueId, int> values = program.free_values();
  if (values.empty()) return {};
  TOSAIC_TRY(const ObservedChannels seen, observe_channels(graph, values, samples, enough_samples, options));
  const Centring offsets(graph, program, seen);
  for (const auto& [n, layer] : program.layers()) {
    Value& bias = graph[layer.bias];
    if (const Offsets& moved = offsets.of(layer.window.x); !moved.empty())
      add(bias, passed_on(graph, layer, moved), -1);
    if (const Offsets& own = offsets.of(graph.nodes[n].outputs[0]); !own.empty()) add(bias, own, 1);
  }
  return {};
}

}  // namespace tosaic
