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

using Ints = std::vector<std::int64_t>;

constexpr std::size_t most_rows = 1024;
constexpr std::size_t most_elements = 1 << 20;  // of the rows of one layer
constexpr std::int64_t most_inputs_of_plans = 2304;

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

// One number per spatial dim, as the schema has it where the call has none.
Ints spread(const Schema& schema, const Node& node, const char* name, std::size_t dims, std::int64_t otherwise) {
  const Attr* given = node.attrs.find(name);
  if (!given && schema.argument(name)) given = &schema.argument(name)->default_value;
  Ints list;
  if (given && std::holds_alternative<Ints>(*given)) list = std::get<Ints>(*given);
  if (given && std::holds_alternative<std::int64_t>(*given)) list = {std::get<std::int64_t>(*given)};
  if (list.empty()) list = {otherwise};
  list.resize(dims, list[0]);
  return list;
}

// Otherwise its weights stay float.
bool gets_quantised(const Node& node, const QuantisationPlan& plan) {
  const ValueId x = node.inputs[0], y = node.outputs.empty() ? no_value : node.outputs[0];
  return x != no_value && plan.quantised[x] && y != no_value && plan.quantised[y];
}

// None: the weight is multiplied otherwise (transposed convolutions, products of matrices), or by too much.
std::optional<Window> window_of(const Graph& graph, const Node& node, std::int64_t most_inputs) {
  const Schema& schema = *find_aten(node.op).schema;
  const ValueId x = node.inputs[0];
  if (graph[x].is_constant() || weight_axis(schema, node.attrs) != 0) return {};
  const Shape &from = graph[x].type.shape, &to = graph[node.outputs[0]].type.shape,
              &weight = graph[node.inputs[1]].type.shape;
  if (!from.is_static() || !to.is_static() || from.is_empty() || to.is_empty() || weight.rank() < 2) return {};
  const auto dims = static_cast<std::size_t>(weight.rank() - 2);
  const Ints& sizes = weight.sizes();
  if (product(std::span(sizes).subspan(1)) > most_inputs || from.rank() < static_cast<int>(dims) + 1) return {};
  Window window;
  window.x = x;
  window.input = from.sizes();
  window.kernel = Ints(sizes.begin() + 2, sizes.end());
  window.stride = spread(schema, node, "stride", dims, 1);
  window.dilation = spread(schema, node, "dilation", dims, 1);
  window.padding = spread(schema, node, "padding", dims, 0);
  const Attr* mode = node.attrs.find("padding");
  if (const auto* text = mode ? std::get_if<std::string>(mode) : nullptr)
    for (std::size_t d = 0; d < dims; ++d)
      window.padding[d] = *text == "same" ? window.dilation[d] * (window.kernel[d] - 1) / 2 : 0;
  window.groups = node.attrs.get_or<std::int64_t>("groups", 1);
  const std::size_t channel = window.input.size() - dims - 1;
  if (window.input[channel] != window.groups * sizes[1]) return {};
  window.output = Ints(to.sizes().begin(), to.sizes().begin() + static_cast<std::ptrdiff_t>(channel));
  window.output.insert(window.output.end(), to.sizes().end() - static_cast<std::ptrdiff_t>(dims), to.sizes().end());
  return window;
}

Ints strides_of(const Ints& sizes) {
  Ints strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

// How far apart elements stand along the dims of a reshape's result; none: at unlike distances.
std::optional<Ints> reshaped(const Ints& sizes, const Ints& strides, const Ints& to) {
  // Runs of dims whose elements all have the same distance, the last first.
  struct Run {
    std::int64_t elements, stride;
  };
  std::vector<Run> runs;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (!runs.empty() && strides[d] == runs.back().elements * runs.back().stride)
      runs.back().elements *= sizes[d];
    else
      runs.push_back({sizes[d], strides[d]});
  }
  Ints found(to.size(), 0);
  std::size_t run = 0;
  for (std::size_t d = to.size(); d-- > 0;) {
    if (to[d] == 1) continue;
    while (run < runs.size() && runs[run].elements == 1) ++run;
    if (run == runs.size() || runs[run].elements % to[d] != 0) return std::nullopt;
    found[d] = runs[run].stride;
    runs[run].elements /= to[d];
    runs[run].stride *= to[d];
  }
  return found;
}

std::optional<Ints> strides_behind(const Shape& from, const std::vector<Move>& moves) {
  Ints sizes = from.sizes();
  std::optional<Ints> strides = strides_of(sizes);
  for (const Move& move : moves) {
    const Ints& to = move.to.shape.sizes();
    if (move.node.op == tosa::op::transpose) {
      Ints permuted;
      for (const std::int64_t d : move.node.attrs.get<Ints>("perms"))
        permuted.push_back((*strides)[static_cast<std::size_t>(d)]);
      strides = std::move(permuted);
    } else {
      strides = reshaped(sizes, *strides, to);
    }
    if (!strides) return std::nullopt;
    sizes = to;
  }
  return strides;
}

// Any number, the same everywhere (the finaliser of splitmix64).
std::uint64_t scattered(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The inputs that are summed at one position, [groups, channels of a group, kernel], zeros where padding is.
void unfold(const Window& window, const float* x, const Ints& strides, std::int64_t position, float* row) {
  const std::size_t dims = window.kernel.size(), channel = window.input.size() - dims - 1;
  Ints at(window.output.size());
  for (std::size_t d = at.size(); d-- > 0; position /= window.output[d]) at[d] = position % window.output[d];
  std::int64_t first = 0;
  for (std::size_t d = 0; d < channel; ++d) first += at[d] * strides[d];
  const std::int64_t channels = window.input[channel], by_channel = strides[channel], taps = product(window.kernel);
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    std::int64_t from = first, rest = tap;
    bool inside = true;
    for (std::size_t d = dims; d-- > 0; rest /= window.kernel[d]) {
      const std::int64_t i =
          at[channel + d] * window.stride[d] - window.padding[d] + rest % window.kernel[d] * window.dilation[d];
      inside = inside && i >= 0 && i < window.input[channel + 1 + d];
      from += i * strides[channel + 1 + d];
    }
    for (std::int64_t c = 0; c < channels; ++c) row[c * taps + tap] = inside ? x[from + c * by_channel] : 0;
  }
}

}  // namespace

std::vector<RoundedLayer> layers_to_round(const Graph& graph, const QuantisationPlan& plan,
                                          const QuantiseOptions& options) {
  std::vector<RoundedLayer> layers;
  // A program that varies in size has the same weights at all of its sizes, whatever the samples of each say.
  if (options.rounding == Rounding::nearest || !options.varying.empty()) return layers;
  for (const PlannedWeight& planned : plan.weights) {
    if (planned.matrix || planned.operand != 1 || !gets_quantised(graph.nodes[planned.node], plan)) continue;
    if (!planned.four_bits && options.rounding == Rounding::by_width) continue;
    layers.push_back({planned.node, planned.axis, planned.four_bits ? DType::i4 : DType::i8,
                      options.bias_correction && takes_bias(graph, graph.nodes[planned.node], planned)});
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
    const auto window = layer.axis > 0 ? std::nullopt : window_of(graph, node, most_inputs);
    if (window)
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
      const std::size_t channel = first.input.size() - first.kernel.size() - 1;
      layers.inputs = static_cast<std::size_t>(first.input[channel] / first.groups * product(first.kernel));
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

void LayerRows::see(ValueId v, std::span<const float> x, const TensorType& type, const std::vector<Move>& moves,
                    ThreadPool& pool) {
  for (auto [reader, end] = readers_.equal_range(v); reader != end; ++reader) {
    Reader& its = reader->second;
    LayersOfRows& layers = layers_[its.layers];
    const Window& window = layers.windows[its.window];
    if (its.looks == samples_ || static_cast<std::int64_t>(x.size()) != product(window.input))
      continue;  // a table that the tensor's elements are chosen from
    // Looks at all windows share the rows evenly.
    const std::size_t most = std::clamp<std::size_t>(most_elements / layers.width(), 1, most_rows);
    const std::size_t look = its.looks++ * layers.windows.size() + its.window, looks = samples_ * layers.windows.size();
    const auto positions = static_cast<std::size_t>(product(window.output));
    const std::size_t count = std::min(positions, (look + 1) * most / looks - look * most / looks);
    const std::optional<Ints> strides = strides_behind(type.shape, moves);
    if (count == 0 || !strides) continue;
    const std::size_t first = layers.rows.size();
    layers.rows.resize(first + count * layers.width());
    pool.run(static_cast<std::int64_t>(count), [&](std::int64_t task, int) {
      const auto i = static_cast<std::size_t>(task);
      const std::size_t begin = i * positions / count, stop = (i + 1) * positions / count;
      const std::size_t position = begin + scattered(look * most_rows + i) % (stop - begin);
      unfold(window, x.data(), *strides, static_cast<std::int64_t>(position),
             layers.rows.data() + first + i * layers.width());
    });
  }
}

}  // namespace tosaic
