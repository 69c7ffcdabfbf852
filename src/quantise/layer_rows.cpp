// SPDX-License-Identifier: Apache-2.0
#include "quantise/layer_rows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "ir/tosa_operators.h"
#include "ops/lowering/weight.h"
#include "ops/op.h"
#include "quantise/bias_correction.h"

namespace tosaic {
namespace {

constexpr std::size_t most_rows = 1024;
constexpr std::size_t most_elements = 1 << 20;  // of the rows of one layer
constexpr std::int64_t most_inputs_of_plans = 2304;

// Otherwise its weights stay float.
bool gets_quantised(const Node& node, const QuantisationPlan& plan) {
  const ValueId x = node.inputs[0], y = node.outputs.empty() ? no_value : node.outputs[0];
  return x != no_value && plan.quantised[x] && y != no_value && plan.quantised[y];
}

// Any number, the same everywhere (the finaliser of splitmix64).
std::uint64_t scattered(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The inputs that are summed at one position, [groups, channels of a group, kernel], zeros where padding is.
void unfold(const Window& window, const Placed& x, std::int64_t position, float* row) {
  const std::size_t dims = window.kernel.size(), channel = window.channel();
  Ints at(window.output.size());
  for (std::size_t d = at.size(); d-- > 0; position /= window.output[d]) at[d] = position % window.output[d];
  const auto offset = [&](std::size_t d, std::int64_t i) { return x.offsets[d][static_cast<std::size_t>(i)]; };
  std::int64_t first = 0;
  for (std::size_t d = 0; d < channel; ++d) first += offset(d, at[d]);
  const std::int64_t channels = window.channels(), taps = product(window.kernel);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    std::int64_t from = first, rest = tap;
    bool inside = true;
    for (std::size_t d = dims; d-- > 0; rest /= window.kernel[d]) {
      const std::int64_t i =
          at[channel + d] * window.stride[d] - window.padding[d] + rest % window.kernel[d] * window.dilation[d];
      inside = inside && i >= 0 && i < window.input[channel + 1 + d];
      if (inside) from += offset(channel + 1 + d, i);
    }
    for (std::int64_t c = 0; c < channels; ++c) row[c * taps + tap] = inside ? x.x[from + offset(channel, c)] : 0;
  }
}

}  // namespace

std::vector<RoundedLayer> layers_to_round(const Graph& graph, const QuantisationPlan& plan,
                                          const QuantiseOptions& options) {
  std::vector<RoundedLayer> layers;
  if (options.rounding == Rounding::nearest || options.shares_weights) return layers;
  for (const PlannedWeight& planned : plan.weights) {
    if (planned.matrix || planned.operand != 1 || !gets_quantised(graph.nodes[planned.node], plan)) continue;
    if (!planned.four_bits && options.rounding == Rounding::by_width) continue;
    layers.push_back({planned.node, planned.axis, planned.four_bits ? DType::i4 : DType::i8,
                      options.bias_correction && takes_bias(graph, planned)});
  }
  return layers;
}

LayerRows::LayerRows(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options,
                     std::size_t samples)
    : LayerRows(graph, layers_to_round(graph, plan, options), samples, most_inputs_of_plans) {}

LayerRows::LayerRows(const Graph& graph, std::span<const RoundedLayer> layers_to_round, std::size_t samples,
                     std::int64_t most_inputs)
    : samples_(samples) {
  struct Readers {
    std::vector<Window> windows;
    bool readable = true, centred = true;
  };
  std::map<WeightKey, Readers> of_weight;
  for (const RoundedLayer& layer : layers_to_round) {
    const Node& node = graph.nodes[layer.node];
    Readers& readers = of_weight[{node.inputs[1], layer.axis, layer.dtype}];
    const auto window = window_of(graph, node);
    if (window && !window->transposed && window->channels() / window->groups * product(window->kernel) <= most_inputs)
      readers.windows.push_back(*window);
    else
      readers.readable = false;
    readers.centred &= layer.centred;
  }
  for (auto& entry : of_weight) {
    Readers& readers = entry.second;
    if (!readers.readable) continue;
    auto same = std::ranges::find_if(layers_, [&](const LayersOfRows& layers) {
      return layers.windows == readers.windows && layers.centred == readers.centred;
    });
    if (same == layers_.end()) {
      LayersOfRows layers;
      layers.windows = std::move(readers.windows);
      layers.centred = readers.centred;
      const Window& first = layers.windows[0];
      layers.groups = static_cast<std::size_t>(first.groups);
      layers.inputs = static_cast<std::size_t>(first.channels() / first.groups * product(first.kernel));
      same = layers_.insert(same, std::move(layers));
      for (std::size_t w = 0; w < same->windows.size(); ++w)
        readers_.emplace(same->windows[w].x, Reader{layers_.size() - 1, w});
    }
    same->weights.push_back(entry.first);
  }
}

void LayerRows::rename(const std::map<ValueId, ValueId>& now) {
  readers_.clear();
  for (LayersOfRows& layers : layers_)
    std::erase_if(layers.weights, [&](WeightKey& key) {
      const auto it = now.find(std::get<ValueId>(key));
      if (it != now.end()) std::get<ValueId>(key) = it->second;
      return it == now.end();
    });
}

void LayerRows::see(ValueId v, const Look& at, ThreadPool& pool) {
  for (auto [reader, end] = readers_.equal_range(v); reader != end; ++reader) {
    Reader& its = reader->second;
    LayersOfRows& layers = layers_[its.layers];
    const Window& window = layers.windows[its.window];
    if (its.looks == samples_ || at.count() != product(window.input))
      continue;  // a table that the tensor's elements are chosen from
    // Looks at all windows share the rows evenly.
    const std::size_t most = std::clamp<std::size_t>(most_elements / layers.width(), 1, most_rows);
    const std::size_t look = its.looks++ * layers.windows.size() + its.window, looks = samples_ * layers.windows.size();
    const auto positions = static_cast<std::size_t>(product(window.output));
    const std::size_t count = std::min(positions, (look + 1) * most / looks - look * most / looks);
    if (count == 0) continue;
    const Placed& in_place = at.placed();
    const std::size_t first = layers.rows.size();
    layers.rows.resize(first + count * layers.width());
    pool.run(static_cast<std::int64_t>(count), [&](std::int64_t task, int) {
      const auto i = static_cast<std::size_t>(task);
      const std::size_t begin = i * positions / count, stop = (i + 1) * positions / count;
      const std::size_t position = begin + scattered(look * most_rows + i) % (stop - begin);
      unfold(window, in_place, static_cast<std::int64_t>(position), layers.rows.data() + first + i * layers.width());
    });
  }
}

}  // namespace tosaic
