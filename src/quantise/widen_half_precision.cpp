// SPDX-License-Identifier: Apache-2.0
// A program of half-precision floats is quantised as the f32 program with the same weights: between two quantised
// tensors there is no half to round to. Only the program's own inputs and outputs stay what the caller has, after
// conversions.
#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ir/states.h"
#include "ir/tensor.h"
#include "quantise/quantise.h"

namespace tosaic {
namespace {

bool half(DType type) { return type == DType::f16 || type == DType::bf16; }

ValueId convert(Rewriter& out, ValueId from, ValueId to, DType dtype) {
  return out.add(aten::op::_to_copy, {from}, {{"dtype", dtype}}, to, nullptr);
}

std::vector<DType> dtypes(const Graph& graph) {
  std::vector<DType> all;
  for (const Value& v : graph.values) all.push_back(v.type.dtype);
  return all;
}

// The bodies of control flow say their own types: what goes in and comes out is of these.
void keep_half_precision(Graph& graph, Node node, const std::vector<DType>& before, Rewriter& out) {
  const auto was_half = [&](ValueId v) {
    return v != no_value && v < before.size() && half(before[v]) && graph[v].type.dtype == DType::f32;
  };
  const auto as_before = [&](ValueId v) {
    return graph.add_value(graph[v].name + ".half", graph[v].type.with(before[v]));
  };
  for (ValueId& v : node.inputs) {
    if (was_half(v)) {
      v = convert(out, v, as_before(v), before[v]);
      continue;
    }
    // An input of the program was replaced by its f32 form, which the conversion before it tells.
    for (const Node& made : graph.nodes)
      if (v != no_value && v >= before.size() && made.outputs == std::vector{v}) v = made.inputs[0];
  }
  out.keep(
      std::move(node), [&](ValueId v) { return was_half(v) ? as_before(v) : v; },
      [&](ValueId half, ValueId wide, const LocRef&) { convert(out, half, wide, DType::f32); });
}

}  // namespace

void widen_half_precision(Graph& graph) {
  const StatesAsTensors states(graph);
  const std::vector<DType> before = dtypes(graph);
  std::vector<char> is_input(graph.values.size(), 0);
  for (ValueId v : graph.inputs) is_input[v] = 1;
  std::vector<DType> declared;
  for (ValueId v : graph.outputs) declared.push_back(graph[v].type.dtype);
  Rewriter out(graph);
  for (ValueId v = 0; v < before.size(); ++v) {
    if (!half(graph[v].type.dtype)) continue;
    if (is_input[v]) {
      const ValueId wide = graph.add_value(graph[v].name + ".f32", graph[v].type.with(DType::f32));
      out.replace(v, convert(out, v, wide, DType::f32));
      continue;
    }
    if (graph[v].is_constant()) graph[v].constant = converted({graph[v].type, graph[v].constant.data()}, DType::f32);
    graph[v].type.dtype = DType::f32;
  }
  out.each([&](Node& node) {
    for (const auto& [name, attr] : Attrs(node.attrs))
      if (const auto* type = std::get_if<DType>(&attr); type && half(*type)) node.attrs.set(name, DType::f32);
    if (node.regions.empty())
      out.keep(std::move(node));
    else
      keep_half_precision(graph, std::move(node), before, out);
  });
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    if (!half(declared[i])) continue;
    const ValueId wide = graph.outputs[i];
    std::string name = std::exchange(graph[wide].name, graph[wide].name + ".f32");
    graph.outputs[i] = graph.add_value(std::move(name), graph[wide].type.with(declared[i]));
    convert(out, wide, graph.outputs[i], declared[i]);
  }
  states.restore(graph);
}

}  // namespace tosaic
