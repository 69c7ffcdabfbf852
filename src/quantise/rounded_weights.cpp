// SPDX-License-Identifier: Apache-2.0
#include "quantise/rounded_weights.h"

#include <algorithm>
#include <utility>

#include "quantise/as_f32.h"
#include "quantise/least_squares.h"

namespace tosaic {
namespace {

// A weight of four bits, or of eight.
struct Rounded {
  Bytes floats;
  TensorType type;
  Bytes content;
  std::int8_t* values = nullptr;  // of `content`
};

Rounded rounded_to_nearest(const Graph& graph, const WeightKey& key, const QuantiseWeight& quantise_one) {
  const auto& [w, axis, dtype] = key;
  const Tensor weight{graph[w].type, graph[w].constant};
  const Tensor nearest = quantise_one(w, weight, axis, dtype);
  Rounded rounded{as_f32(weight), nearest.type, {}};
  rounded.content = Bytes::fresh(nearest.data.size(), rounded.values);
  std::ranges::copy(nearest.data.as<std::int8_t>(), rounded.values);
  return rounded;
}

}  // namespace

RoundedWeights round_weights(const Graph& graph, LayerRows rows, const QuantiseWeight& quantise_one, int threads) {
  ThreadPool& pool = ThreadPool::shared(threads);
  RoundedWeights all;
  for (LayersOfRows& layers : rows.layers()) {
    if (layers.rows.empty()) continue;  // the samples do not reach them
    std::vector<Rounded> weights;
    for (const WeightKey& key : layers.weights) weights.push_back(rounded_to_nearest(graph, key, quantise_one));
    pool.run(static_cast<std::int64_t>(layers.groups), [&](std::int64_t group, int) {
      const auto g = static_cast<std::size_t>(group);
      const LeastSquares solved({layers.rows.data() + g * layers.inputs, layers.count(), layers.inputs, layers.width()},
                                layers.centred, pool);
      for (std::size_t w = 0; w < weights.size(); ++w) {
        Scales& scales = *weights[w].type.scales;
        const auto all_channels = static_cast<std::size_t>(graph[std::get<0>(layers.weights[w])].type.shape.size(0));
        const std::size_t count = all_channels / layers.groups,
                          each = scales.per_tensor() ? 1 : scales.scale.size() / all_channels;
        std::vector<RoundedChannel> channels;
        for (std::size_t c = g * count; c < (g + 1) * count; ++c)
          channels.push_back({weights[w].floats.as<float>().data() + c * layers.inputs,
                              weights[w].values + c * layers.inputs,
                              std::span(scales.scale).subspan(scales.per_tensor() ? 0 : c * each, each)});
        const bool four_bits = std::get<DType>(layers.weights[w]) == DType::i4;
        solved.round(channels, static_cast<int>(scales.highest), four_bits && !scales.per_tensor(), pool);
      }
    });
    layers.rows = {};
    for (std::size_t w = 0; w < weights.size(); ++w)
      all[layers.weights[w]] = {std::move(weights[w].type), std::move(weights[w].content)};
  }
  return all;
}

}  // namespace tosaic
