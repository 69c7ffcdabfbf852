// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/states.h"
#include "ops/lowering/conversion.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/quantise.h"

namespace tosaic {
namespace {

bool is_conversion(const Node& node) { return node.op.is_conversion(); }

}  // namespace

void quantise_io(Graph& graph) {
  auto read_by = consumers(graph);
  auto made_by = producers(graph);
  auto conversion = [&](std::uint32_t n, Operator op) { return graph.nodes[n].op.overload_of(op); };
  for (ValueId& v : graph.inputs) {
    if (read_by[v].size() != 1 || !conversion(read_by[v][0], quantized_decomposed::op::quantize_per_tensor)) continue;
    ValueId quantised_value = graph.nodes[read_by[v][0]].outputs[0];
    std::swap(graph[quantised_value].name, graph[v].name);
    graph.nodes[read_by[v][0]].op = {};
    v = quantised_value;
  }
  for (ValueId& v : graph.outputs) {
    if (made_by[v] < 0 ||
        !conversion(static_cast<std::uint32_t>(made_by[v]), quantized_decomposed::op::dequantize_per_tensor))
      continue;
    ValueId quantised_value = graph.nodes[static_cast<std::size_t>(made_by[v])].inputs[0];
    std::swap(graph[quantised_value].name, graph[v].name);
    v = quantised_value;
  }
  std::erase_if(graph.nodes, [](const Node& n) { return n.op.none(); });
  drop_dead(graph);
}

// Has the node quantised values, and must it compute with floats?
static bool among_floats(const Graph& graph, const Node& node) {
  const Rule rule = find_aten(node.op).rule;
  auto real = [&](ValueId v) { return v != no_value && is_float(graph[v].type.dtype) && !graph[v].type.quantised(); };
  auto has_scales = [&](ValueId v) { return v != no_value && graph[v].type.quantised(); };
  bool float_result = std::any_of(node.outputs.begin(), node.outputs.end(), real);
  bool float_operand = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId v) { return real(v) && !graph[v].is_constant(); });
  bool any_quantised = std::any_of(node.inputs.begin(), node.inputs.end(), has_scales) ||
                       std::any_of(node.outputs.begin(), node.outputs.end(), has_scales);
  // What follows the values and gives no quantised values (a cast to integers or to half-precision floats, a sum as
  // integers) follows the real values.
  const bool gives_others = !node.outputs.empty() && node.outputs[0] != no_value && !has_scales(node.outputs[0]);
  const bool leaves_quantised = gives_others && (rule->maps_values() || (rule->adds && node.attrs.find("dtype")));
  return any_quantised && (float_result || float_operand || !rule->has_integer_form || leaves_quantised);
}

bool is_quantised(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const Value& v) { return v.type.quantised(); });
}

void insert_boundaries(Graph& graph, Io io) {
  if (!is_quantised(graph)) return;
  Rewriter out(graph);
  FloatCalls floats(graph, out);
  const StatesAsTensors states(graph);  // which keep their content between runs as the program says it: in floats
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const ValueId v = graph.inputs[i];
    if (!graph[v].type.quantised() || (io != Io::floats && !states.is_input(i))) continue;
    // The program's input stays float under its own name; its quantised values are a new value.
    TensorType type = graph[v].type;
    graph[v].type = {DType::f32, type.shape, {}};
    ValueId quantised_value = graph.add_value(graph[v].name + ".codes", type);
    out.keep(quantise_node(type, v, quantised_value, nullptr));
    floats.already_real(quantised_value, v);
    out.replace(v, quantised_value);
  }
  out.each([&](Node& node) {
    if (is_conversion(node) || !among_floats(graph, node))
      out.keep(std::move(node));
    else
      floats.keep(std::move(node));
  });
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId quantised_value = graph.outputs[i];
    if (!graph[quantised_value].type.quantised() || (io != Io::floats && !states.is_output(i)) ||
        graph[quantised_value].is_constant())
      continue;
    ValueId real = graph.outputs[i] = floats.real(quantised_value, nullptr);
    graph[real].name = std::exchange(graph[quantised_value].name, graph[quantised_value].name + ".codes");
  }
  states.restore(graph);
  if (io == Io::quantised) quantise_io(graph);
  drop_dead(graph);
}

}  // namespace tosaic
