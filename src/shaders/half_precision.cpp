// SPDX-License-Identifier: Apache-2.0
#include "shaders/half_precision.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

// Values of one memory: a view is its operand.
class Memories {
 public:
  explicit Memories(const Graph& graph) : root_(graph.values.size()) {
    std::iota(root_.begin(), root_.end(), ValueId{0});
    for (const Node& node : graph.nodes)
      if (is_view(node)) root_[of(node.outputs[0])] = of(node.inputs[0]);
  }
  ValueId of(ValueId v) {
    while (root_[v] != v) v = root_[v] = root_[root_[v]];
    return v;
  }

 private:
  std::vector<ValueId> root_;
};

bool has_weights(const Node& node) {
  return node.op == tosa::op::conv2d || node.op == tosa::op::conv3d || node.op == tosa::op::depthwise_conv2d ||
         node.op == tosa::op::transpose_conv2d || node.op == tosa::op::matmul;
}

// What f16 cannot hold becomes its largest number: infinities are no weights.
Bytes f16_of(const Bytes& numbers) {
  constexpr float most = 65504;
  std::vector<double> values;
  for (const float x : numbers.as<float>()) values.push_back(std::isfinite(x) ? std::clamp(x, -most, most) : x);
  return constant_bytes(DType::f16, std::span<const double>(values));
}

}  // namespace

Graph in_half_precision(const Graph& graph) {
  Graph made = graph;
  Memories memories(graph);
  std::vector<bool> stays(graph.values.size(), false);
  for (const auto* list : {&graph.inputs, &graph.outputs})
    for (ValueId v : *list) stays[memories.of(v)] = true;
  // Scales of rows of quantised values, and their zero points.
  for (const Node& node : graph.nodes)
    for (std::size_t i = extension::scaled_product::row_scale;
         node.op == extension::op::scaled_product && i < node.inputs.size(); ++i)
      stays[memories.of(node.inputs[i])] = true;
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs) {
      const ValueId memory = memories.of(v);
      if (graph[v].type.dtype == DType::f32 && !stays[memory] && !graph[memory].is_constant())
        made[v].type.dtype = DType::f16;
    }
  for (const Node& node : graph.nodes) {
    if (!has_weights(node)) continue;
    const ValueId weights = node.inputs[1];
    if (!graph[weights].is_constant() || made[weights].type.dtype != DType::f32) continue;
    made[weights].type.dtype = DType::f16;
    made[weights].constant = f16_of(graph[weights].constant);
  }
  return made;
}

}  // namespace tosaic::shaders
