// SPDX-License-Identifier: Apache-2.0
// A pad of zeros, or of zero points, before a convolution is that convolution's own padding.
#include <algorithm>
#include <cmath>
#include <span>

#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

bool is_convolution(const Node& node) {
  return node.op == tosa::op::conv2d || node.op == tosa::op::conv3d || node.op == tosa::op::depthwise_conv2d;
}

// What a padding of its own counts as nothing: zero times a weight, which must be a number.
bool fills_with_nothing(const tosa::View& pad, const tosa::View& convolution) {
  const Bytes& fill = pad.constant(2);
  const Bytes& weights = convolution.constant(1);
  if (fill.null() || weights.null()) return false;
  if (!is_float(pad.in(0).dtype)) {
    const auto zero_point = convolution.constant_integers(3);
    return zero_point && pad.constant_integers(2)->at(0) == zero_point->at(0);
  }
  const DType type = convolution.in(1).dtype;
  const auto elements = static_cast<std::size_t>(convolution.in(1).shape.elements());
  for (std::size_t i = 0; i < elements; ++i)
    if (!std::isfinite(element_as_double(type, weights.data(), i))) return false;
  return element_as_double(pad.in(0).dtype, fill.data(), 0) == 0;
}

// Before and after each dim of an image, none before batches and channels; nullopt: there are others, or windows would
// lie beyond the image.
std::optional<std::vector<std::int64_t>> padding_with(const tosa::View& pad, const tosa::View& convolution) {
  const auto sides = pad.constant_integers(1);
  if (!sides || !fills_with_nothing(pad, convolution)) return std::nullopt;
  const Shape& weight = convolution.in(1).shape;
  const std::size_t first = convolution.node().op == tosa::op::depthwise_conv2d ? 0 : 1;  // HWCM, or OHWI
  std::vector<std::int64_t> all = convolution.ints("pad");
  if (std::ranges::any_of(std::span(*sides).first(2), [](auto n) { return n != 0; }) ||
      std::ranges::any_of(std::span(*sides).last(2), [](auto n) { return n != 0; }))
    return std::nullopt;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] += (*sides)[2 + i];
    const std::int64_t kernel = weight.size(static_cast<int>(first + i / 2)),
                       reach = (kernel - 1) * convolution.ints("dilation")[i / 2];
    if ((*sides)[2 + i] < 0 || all[i] > reach) return std::nullopt;
  }
  return all;
}

}  // namespace

bool fold_pads(Graph& graph) {
  const auto made_by = producers(graph);
  bool changed = false;
  for (Node& node : graph.nodes) {
    const std::int32_t p = is_convolution(node) ? made_by[node.inputs[0]] : -1;
    if (p < 0 || graph.nodes[static_cast<std::size_t>(p)].op != tosa::op::pad) continue;
    const Node& pad = graph.nodes[static_cast<std::size_t>(p)];
    const auto all = padding_with(tosa::View(graph, pad), tosa::View(graph, node));
    if (!all) continue;
    node.inputs[0] = pad.inputs[0];
    node.attrs.set("pad", *all);
    changed = true;
  }
  if (changed) drop_dead(graph);
  return changed;
}

}  // namespace tosaic
