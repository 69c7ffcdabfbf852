// SPDX-License-Identifier: Apache-2.0
// conv (or linear) followed by an inference batch norm is one conv:
//   y = (conv(x) - mean) * g + beta,  g = gamma / sqrt(var + eps)
//     = conv(x; w * g) + (bias - mean) * g + beta
// So are products and sums with constants by channel, of which norms are often written.
#include <algorithm>

#include "base/parallel.h"
#include "ir/aten_operators.h"
#include "ir/provenance.h"
#include "normalise/channel_affine.h"
#include "normalise/normalise.h"
#include "ops/lowering/weight.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// The weight's axis that runs over output channels, -1 when this call's weight cannot be scaled by channel (a matrix of
// a product is none).
int output_channel_axis(const Node& node, const Schema& schema) {
  return schema.argument("weight") ? weight_axis(schema, node.attrs) : -1;
}

// The operand of a norm, or of a call that may be a written one: its only computed operand.
ValueId normed(const Graph& graph, const Node& node, bool written) {
  if (is_batch_norm(node.op)) return node.inputs[0];
  if (!written || node.outputs.size() != 1 || !node.regions.empty()) return no_value;
  ValueId x = no_value;
  for (ValueId v : node.inputs) {
    if (v == no_value || graph[v].is_constant()) continue;
    if (x != no_value) return no_value;
    x = v;
  }
  return x;
}

}  // namespace

void fold_batch_norm(Graph& graph, bool written) {
  auto made_by = producers(graph);
  auto read_by = consumers(graph);
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  for (Node& norm : graph.nodes) {
    const ValueId x = normed(graph, norm, written);
    if (x == no_value || made_by[x] < 0) continue;
    Node& conv = graph.nodes[static_cast<std::size_t>(made_by[x])];
    FoundOp found = find_aten(conv.op);
    if (!found.rule->accumulates || conv.inputs.size() < 2 || conv.inputs[1] == no_value || read_by[x].size() != 1 ||
        is_output[x] || !graph[conv.inputs[1]].is_constant() || graph[conv.inputs[1]].type.dtype != DType::f32)
      continue;
    bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != no_value;
    if (has_bias && !graph[conv.inputs[2]].is_constant()) continue;
    const int axis = output_channel_axis(conv, *found.schema);
    const Value weight = graph[conv.inputs[1]];
    if (axis < 0 || axis >= weight.type.rank()) continue;
    const int dim = graph[x].type.rank() - (conv.op == aten::op::linear ? 1 : weight.type.rank() - 1);
    const auto affine = is_batch_norm(norm.op) ? channel_affine(graph, norm)
                                               : written_affine(graph, norm, x, dim,
                                                                static_cast<std::size_t>(weight.type.shape.size(axis)));
    if (!affine || affine->dim != dim || std::ssize(affine->gain) != weight.type.shape.size(axis)) continue;
    // Of a call that has no meaning (a weight of the wrong rank) nothing can be said.
    if (!try_node(graph, conv).ok() || (is_batch_norm(norm.op) && !try_node(graph, norm).ok())) continue;
    // What others read as well would be kept twice.
    if (!is_batch_norm(norm.op) && conv.inputs[1] < read_by.size() && read_by[conv.inputs[1]].size() != 1) continue;
    if (has_bias && graph[conv.inputs[2]].type.shape.elements() != weight.type.shape.size(axis)) continue;

    std::int64_t inner = 1, channels = weight.type.shape.size(axis);
    for (int i = axis + 1; i < weight.type.rank(); ++i) inner *= weight.type.shape.size(i);
    auto old = weight.constant.as<float>();
    float* scaled = nullptr;
    const Bytes folded = Bytes::fresh(old.size(), scaled);
    const auto run = std::max<std::size_t>(static_cast<std::size_t>(inner), 1);  // weights of one channel in a row
    in_parallel(old.size() / run, (1 << 17) / run + 1, [&](std::size_t first, std::size_t last) {
      for (std::size_t r = first; r < last; ++r) {
        const double gain = affine->gain[r % static_cast<std::size_t>(channels)];
        simd::bulk_loops().scale(old.data() + r * run, run, gain, scaled + r * run);
      }
    });
    std::vector<float> bias(static_cast<std::size_t>(channels));
    auto old_bias = has_bias ? reals_of(graph[conv.inputs[2]]) : std::vector<double>(bias.size(), 0.0);
    for (std::size_t c = 0; c < bias.size(); ++c)
      bias[c] = static_cast<float>(old_bias[c] * affine->gain[c] + affine->offset[c]);

    conv.inputs.resize(std::max<std::size_t>(conv.inputs.size(), 3), no_value);
    const std::string name = weight.name.substr(0, weight.name.find(".folded"));
    conv.inputs[1] = graph.add_value(name + ".folded", weight.type, folded);
    conv.inputs[2] = graph.add_value(name + ".bias", {DType::f32, Shape{channels}, {}}, Bytes::of(std::move(bias)));
    conv.outputs[0] = norm.outputs[0];
    made_by[norm.outputs[0]] = made_by[x];
    conv.loc = joined(conv.loc, norm.loc);
    norm.op = {};
  }
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.none(); });
  drop_dead(graph);
}

}  // namespace tosaic
