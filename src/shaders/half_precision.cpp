// SPDX-License-Identifier: Apache-2.0
#include "shaders/half_precision.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "ir/tosa_operators.h"
#include "ops/definitions/extension.h"
#include "ops/definitions/tosa_op.h"
#include "plan/uses.h"
#include "shaders/narrow_interface.h"
#include "shaders/prepare.h"
#include "shaders/quantised_weights.h"
#include "shaders/row_product.h"
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

// What f16 cannot hold becomes its largest number: infinities are no weights.
Bytes f16_of(const Bytes& numbers) {
  constexpr float most = 65504;
  std::vector<double> values;
  for (const float x : numbers.as<float>()) values.push_back(std::isfinite(x) ? std::clamp(x, -most, most) : x);
  return constant_bytes(DType::f16, std::span<const double>(values));
}

// Does a convolution or a product read it, where it lies or moved? `large`: one of more rows than a vector's few, which
// gains by 16 bits.
class ReadByProducts {
 public:
  explicit ReadByProducts(const Graph& graph, bool large = false) : read_(graph.values.size(), false) {
    for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
      const tosa::Op* op = tosa::find(node->op);
      const bool moves = op && op->keeps_scales() && read_[node->outputs[0]];
      if (moves || (has_weights(*node) && !(large && has_few_rows(graph[node->outputs[0]].type.shape))))
        for (ValueId v : node->inputs) read_[v] = true;
    }
  }
  bool operator()(ValueId v) const { return read_[v]; }

 private:
  static bool has_few_rows(const Shape& shape) {
    return shape.is_static() && shape.rank() > 0 &&
           shape.elements() <= row_product::most_rows * shape.size(shape.rank() - 1);
  }
  std::vector<bool> read_;
};

// Sums of two computed tensors, and what they are added to where others read it as well.
std::vector<ValueId> running_sums(const Graph& graph) {
  const ReadByProducts read(graph);
  const plan::Uses uses(graph);
  std::vector<ValueId> found;
  for (const Node& node : graph.nodes) {
    if (node.op != tosa::op::add || graph[node.outputs[0]].type.dtype != DType::f32) continue;
    const Shape& shape = graph[node.outputs[0]].type.shape;
    const bool of_two = std::ranges::all_of(
        node.inputs, [&](ValueId v) { return !graph[v].is_constant() && graph[v].type.shape == shape; });
    if (!of_two || read(node.outputs[0])) continue;
    found.push_back(node.outputs[0]);
    for (ValueId v : node.inputs)
      if (uses.users[v].size() > 1 && !read(v)) found.push_back(v);
  }
  return found;
}

bool is_named(const Graph& graph, const Node& node, ValueId v, const std::string& name) {
  if (graph[v].name == name || graph[v].name.starts_with(name + ".")) return true;
  if (!node.loc) return false;
  const std::string& module = node.loc->module_path;
  return node.loc->name == name || module == name || module.starts_with(name + ".");
}

}  // namespace

bool has_weights(const Node& node) {
  return node.op == tosa::op::conv2d || node.op == tosa::op::conv3d || node.op == tosa::op::depthwise_conv2d ||
         node.op == tosa::op::transpose_conv2d || node.op == tosa::op::matmul ||
         node.op == extension::op::grouped_conv2d;
}

std::vector<std::string> names_of_nothing(const Graph& graph, const KeptWide& wide) {
  std::vector<std::string> left = wide.names;
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      std::erase_if(left, [&](const std::string& name) { return is_named(graph, node, v, name); });
  return left;
}

Graph in_half_precision(const Graph& graph, const KeptWide& wide) {
  Graph made = graph;
  Memories memories(graph);
  std::vector<bool> stays(graph.values.size(), false);
  if (wide.sums) {
    for (ValueId v : running_sums(graph)) stays[memories.of(v)] = true;
    // Parts of one are read where they lie, and are converted nowhere.
    for (const Node& node : graph.nodes)
      if (node.op == tosa::op::slice && stays[memories.of(node.inputs[0])]) stays[memories.of(node.outputs[0])] = true;
  }
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (std::ranges::any_of(wide.names, [&](const std::string& name) { return is_named(graph, node, v, name); }))
        stays[memories.of(v)] = true;
  const std::vector<ValueId> narrow = narrow_interface(graph, [&](ValueId v) { return stays[memories.of(v)]; });
  for (const auto* list : {&graph.inputs, &graph.outputs})
    for (ValueId v : *list)
      if (std::ranges::find(narrow, v) == narrow.end()) stays[memories.of(v)] = true;
  // What is joined there: it is computed where it lies, and not converted.
  const ReadByProducts large(graph, true);
  for (const Node& node : graph.nodes)
    if (node.op == tosa::op::concat && stays[memories.of(node.outputs[0])])
      for (ValueId v : node.inputs)
        if (!large(memories.of(v))) stays[memories.of(v)] = true;
  // Scales of rows of quantised values, and their zero points.
  for (const Node& node : graph.nodes)
    for (std::size_t i = extension::scaled_product::row_scale;
         node.op == extension::op::scaled_product && i < node.inputs.size(); ++i)
      stays[memories.of(node.inputs[i])] = true;
  for (ValueId v : graph.inputs)
    if (graph[v].type.dtype == DType::f32 && !stays[memories.of(v)]) made[v].type.dtype = DType::f16;
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

Result<Graph> stored_in_half_precision(const Graph& graph, const KeptWide& wide, vulkan_program::TierId tier) {
  const Graph halves = in_half_precision(prepared(graph), wide);
  const plan::Uses uses(halves);
  QuantisedMatrices matrices;
  TOSAIC_TRY(const Steps steps, steps_of({halves, uses, tier, true, nullptr, &matrices}));
  Graph stored = graph;
  Memories memories(graph);
  std::set<ValueId> taken;  // memories
  const auto take = [&](ValueId v) {
    if (v >= graph.values.size() || halves[v].name != graph[v].name) return;  // of the raised form alone
    if (halves[v].type.dtype == graph[v].type.dtype) return;
    stored[v].type.dtype = halves[v].type.dtype;
    stored[v].constant = halves[v].constant;
    taken.insert(memories.of(v));
  };
  for (const Step& step : steps.list) {
    std::ranges::for_each(step.writes, take);
    std::set<ValueId> inside;
    for (std::uint32_t n : step.nodes) {
      const Node& node = halves.nodes[n];
      if (has_weights(node)) {
        if (halves[node.inputs[1]].is_constant()) take(node.inputs[1]);
        if (inside.contains(node.inputs[0])) take(node.inputs[0]);
      }
      inside.insert(node.outputs.begin(), node.outputs.end());
    }
  }
  // Weights of nodes that another one stands for, which has them joined.
  std::vector<bool> is_made(graph.values.size(), false);
  for (const Node& node : halves.nodes)
    for (ValueId v : node.outputs)
      if (v < graph.values.size()) is_made[v] = true;
  for (const Node& node : graph.nodes) {
    if (!has_weights(node) || is_made[node.outputs[0]]) continue;
    tosaic::Value& weights = stored[node.inputs[1]];
    if (!weights.is_constant() || weights.type.dtype != DType::f32) continue;
    weights.type.dtype = DType::f16;
    weights.constant = f16_of(weights.constant);
  }
  // What is stored may have been viewed before its last elementwise nodes, not after them.
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (graph[v].type.dtype == DType::f32 && taken.contains(memories.of(v))) stored[v].type.dtype = DType::f16;
  return stored;
}

}  // namespace tosaic::shaders
