// SPDX-License-Identifier: Apache-2.0
// Attention with what programs do to its scores, of many sizes.
#pragma once
#include <limits>

#include "shaders/heads.h"

namespace tosaic::test {

// Places that attend only to those before them, and to none at all in line `blind`.
inline ValueId masked(Net& net, ValueId scores, std::int64_t blind) {
  const std::int64_t places = net.graph[scores].type.shape.size(2);
  std::vector<double> mask;
  for (std::int64_t line = 0; line < places; ++line)
    for (std::int64_t key = 0; key < places; ++key)
      mask.push_back(key > line || line == blind ? -std::numeric_limits<double>::infinity() : 0);
  const TensorType type{DType::f32, Shape{1, places, places}};
  const ValueId m = net.graph.add_value("mask", type, constant_bytes(DType::f32, std::span<const double>(mask)));
  return net.node("add", {scores, m});
}

// As exported programs have it: where places attend only to those before them, the row's least score takes the place of
// the others, and zero that of its weight.
inline ValueId softmax_of_earlier(Net& net, ValueId scores) {
  const std::int64_t places = net.graph[scores].type.shape.size(2);
  std::vector<std::int64_t> before;
  for (std::int64_t line = 0; line < places; ++line)
    for (std::int64_t key = 0; key < places; ++key) before.push_back(key <= line);
  const TensorType type{DType::boolean, Shape{1, places, places}, {}};
  const ValueId mask =
      net.graph.add_value("mask", type, constant_bytes(type.dtype, std::span<const std::int64_t>(before)));
  const ValueId least =
      net.node("reduce_min", {scores}, {{"axis", std::int64_t{2}}, {"nan_mode", std::string("propagate")}});
  const ValueId x = net.node("select", {mask, scores, least}),
                all = net.node("exp", {net.node("sub", {x, along_last(net, "reduce_max", x)})}),
                e = net.node("select", {mask, all, net.constant(DType::f32, {1, 1, 1}, 0, 0)});
  return product(net, e, net.node("reciprocal", {along_last(net, "reduce_sum", e)}));
}
// Rows of which all scores are -inf become zeros.
inline ValueId softmax_of_some(Net& net, ValueId scores) {
  const ValueId x = masked(net, scores, 20);
  const auto from = [&](ValueId v, double least) {
    return net.node("clamp", {v},
                    {{"min_val", least},
                     {"max_val", std::numeric_limits<double>::infinity()},
                     {"nan_mode", std::string("propagate")}});
  };
  const ValueId most = from(along_last(net, "reduce_max", x), -std::numeric_limits<float>::max()),
                e = net.node("exp", {net.node("sub", {x, most})});
  return product(net, e, net.node("reciprocal", {from(along_last(net, "reduce_sum", e), 1)}));
}

inline std::vector<Heads> attention_cases() {
  const auto scaled = [](Net& net, ValueId scores) {
    return product(net, scores, net.constant(DType::f32, {1, 1, 1}, 0.3, 0.3));
  };
  const auto causal = [](Net& net, ValueId scores) { return masked(net, scores, -1); };
  const auto blind = [](Net& net, ValueId scores) { return masked(net, scores, 70); };
  return {{17, 3, 8},
          {64, 1, 64, 3, 0.125},
          {130, 2, 64, 2, 0.5},
          {97, 1, 40, 3, 0.2, scaled},
          {100, 2, 24, 3, 1, causal},
          {50, 1, 80, 1, 0.1},
          {70, 1, 128, 2, 0.125, causal},
          {90, 2, 16, 3, 0.25, blind, "abs"},
          {200, 1, 32, 8},
          {33, 2, 16, 3, 0.5, {}, "sigmoid", 3},
          {49, 3, 32, 2, 0.25, scaled, "abs", 4},
          {70, 2, 16, 3, 0.25, {}, "sigmoid", 1, softmax_of_earlier},
          {40, 2, 24, 2, 1, {}, "sigmoid", 2, softmax_of_earlier},
          {48, 2, 16, 3, 0.25, {}, "abs", 1, softmax_of_some}};
}

}  // namespace tosaic::test
