// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/tosa_operators.h"
#include "normalise/channel_affine.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// Weights in 16-bit floats keep their digits below gains of this size.
constexpr double largest_gain = 256;
// What reaches further is a mask, whose numbers are none of the layer's.
constexpr double largest_offset = 1000;

// A constant's elements by index of `dim` of what it is broadcast to; empty: they differ along another dim.
std::vector<double> by_channel(const Value& constant, int rank, int dim, std::size_t channels) {
  const Shape& shape = constant.type.shape;
  std::vector<double> elements = reals_of(constant);
  if (elements.size() == 1) return std::vector<double>(channels, elements[0]);
  const int own = dim - (rank - shape.rank());
  if (own < 0 || elements.size() != channels || shape.size(own) != static_cast<std::int64_t>(channels)) return {};
  return elements;
}

}  // namespace

std::optional<ChannelAffine> written_affine(const Graph& graph, const Node& call, ValueId x, int dim,
                                            std::size_t channels) {
  if (std::ranges::count(call.inputs, x) != 1 || graph[call.outputs[0]].type != graph[x].type) return {};
  const auto trial = try_node(graph, call, {.fold = true});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return {};
  const Graph& tosa = trial->graph;
  ChannelAffine affine{dim, std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
  ValueId at = tosa.inputs[0];
  for (const Node& node : tosa.nodes) {
    const auto place = std::ranges::find(node.inputs, at) - node.inputs.begin();
    if (place > 1 || node.inputs.size() < 2 || node.outputs.size() != 1) return {};
    const ValueId other = node.inputs[static_cast<std::size_t>(1 - place)];
    if (!tosa[other].is_constant() || tosa[node.outputs[0]].type != tosa[at].type) return {};
    const std::vector<double> c = by_channel(tosa[other], tosa[at].type.rank(), dim, channels);
    if (c.empty()) return {};
    for (std::size_t i = 0; i < channels; ++i) {
      double &gain = affine.gain[i], &offset = affine.offset[i];
      if (node.op == tosa::op::mul) {
        gain *= c[i], offset *= c[i];
      } else if (node.op == tosa::op::add) {
        offset += c[i];
      } else if (node.op == tosa::op::sub) {
        if (place == 1) gain = -gain, offset = -offset;
        offset += place == 1 ? c[i] : -c[i];
      } else {
        return {};
      }
    }
    at = node.outputs[0];
  }
  const auto of_weights = [](double gain) {
    return std::fabs(gain) <= largest_gain && std::fabs(gain) * largest_gain >= 1;
  };
  if (at != trial->results[0] || !std::ranges::all_of(affine.gain, of_weights) ||
      !std::ranges::all_of(affine.offset, [](double t) { return std::fabs(t) < largest_offset; }))
    return {};
  return affine;
}

}  // namespace tosaic
