// SPDX-License-Identifier: Apache-2.0
#include "normalise/elements.h"

#include <algorithm>
#include <cstdint>

#include "ir/tensor.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// The first result of the call on constant elements; empty where it cannot be computed now.
template <class F>
std::vector<float> result_on(const Graph& graph, const Node& node, F&& value) {
  const auto given = [&](std::size_t i, TensorType& type, Bytes& elements) {
    if (i != 0) return;
    type = {DType::f32, type.shape, {}};
    const auto count = static_cast<std::uint32_t>(type.shape.elements());
    float* memory = nullptr;
    elements = Bytes::fresh(count, memory);
    for (std::uint32_t e = 0; e < count; ++e) memory[e] = value(e);
  };
  auto trial = try_node(graph, node, {.fold = true, .operand = given});
  if (!trial.ok() || trial->results.empty()) return {};
  const Value& y = trial->graph[trial->results[0]];
  if (!y.is_constant() || y.type.dtype != DType::f32) return {};
  const auto elements = y.constant.as<float>();
  return {elements.begin(), elements.end()};
}

// Made of nothing but TOSA's operators that do not look at elements: what views are, whatever their operands.
bool only_rearranges(const Graph& graph, const Node& node) {
  auto trial = try_node(graph, node);
  return trial.ok() && std::all_of(trial->graph.nodes.begin(), trial->graph.nodes.end(), [](const Node& made) {
           const tosa::Op* op = tosa::find(made.op);
           return op && op->keeps_scales();
         });
}

// Distinct numbers in no order, told from others without a table: a permutation of the grid of 2^-24 between -0.5 and
// 0.5, which floats hold exactly.
constexpr std::uint32_t grid = 1u << 24, factor = 0x5bd1e5, inverse = [] {
  std::uint32_t x = factor;  // Newton: five correct bits of an odd number's inverse become ten, twenty, forty
  for (int i = 0; i < 4; ++i) x *= 2 - factor * x;
  return x % grid;
}();
static_assert(factor * inverse % grid == 1);
float number(std::uint32_t i) { return static_cast<float>(static_cast<double>(i * factor % grid) / grid - 0.5); }
bool is_number(float y, std::uint32_t count) {
  const double place = (static_cast<double>(y) + 0.5) * grid;
  if (!(place >= 0 && place < grid) || place != static_cast<double>(static_cast<std::uint32_t>(place))) return false;
  return static_cast<std::uint32_t>(place) * inverse % grid < count;
}

}  // namespace

Elements elements_of(const Graph& graph, const Node& node) {
  if (only_rearranges(graph, node)) return Elements::moved;
  if (!graph[node.inputs[0]].type.shape.is_static()) return Elements::computed;
  const std::int64_t elements = graph[node.inputs[0]].type.shape.elements();
  if (elements > grid) return Elements::computed;
  const auto count = static_cast<std::uint32_t>(elements);
  const auto y = result_on(graph, node, number);
  if (y.empty()) return Elements::computed;
  // Bounds and padding are what no operand, however large, gets past.
  const float large = 1e30f;
  const auto above = result_on(graph, node, [=](std::uint32_t) { return large; }),
             below = result_on(graph, node, [=](std::uint32_t) { return -large; });
  if (above.size() != y.size() || below.size() != y.size()) return Elements::computed;
  bool moved = true, within = true;
  for (std::size_t i = 0; i < y.size(); ++i) {
    moved &= y[i] == above[i] || y[i] == below[i] || is_number(y[i], count);
    within &= above[i] < large * 1.0001f && below[i] > -large * 1.0001f;
  }
  return moved ? Elements::moved : within ? Elements::averaged : Elements::computed;
}

}  // namespace tosaic
