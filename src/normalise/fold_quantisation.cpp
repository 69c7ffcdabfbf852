// SPDX-License-Identifier: Apache-2.0
// PT2E leaves quantise -> dequantise pairs around float calls. Folding them moves the scales onto the tensor types:
//   dequantise(y): readers take y itself, which knows its scales;
//   quantise(x):   the call that computes x is said to give the quantised tensor.
// Nodes stay at the graph's own inputs and outputs, where real conversions happen.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "normalise/elements.h"
#include "normalise/normalise.h"
#include "ops/computed.h"
#include "ops/lowering/conversion.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

bool is_quantise(const Node& n) { return n.op.is_conversion() && n.op.base().starts_with("quantize_per_tensor"); }
bool is_dequantise(const Node& n) { return n.op.is_conversion() && n.op.base().starts_with("dequantize_per_"); }

std::optional<Scales> scales_of(const Graph& graph, const Node& node) {
  Scales s;
  s.lowest = node.attrs.get_or<std::int64_t>("quant_min", 0);
  s.highest = node.attrs.get_or<std::int64_t>("quant_max", 0);
  if (s.lowest > s.highest) return std::nullopt;
  if (node.op.base().ends_with("per_channel")) {
    if (node.inputs.size() < 2 || !graph[node.inputs[1]].is_constant()) return std::nullopt;
    const Value& scales = graph[node.inputs[1]];
    const auto n = static_cast<std::size_t>(scales.type.shape.elements());
    s.scale.resize(n);
    s.zero_point.assign(n, 0);
    for (std::size_t i = 0; i < n; ++i) s.scale[i] = element_as_double(scales.type.dtype, scales.constant.data(), i);
    if (node.inputs.size() > 2 && node.inputs[2] != no_value) {
      const Value& zeros = graph[node.inputs[2]];
      if (!zeros.is_constant()) return std::nullopt;
      for (std::size_t i = 0; i < n; ++i)
        s.zero_point[i] = element_as_integer(zeros.type.dtype, zeros.constant.data(), i);
    }
    s.axis = static_cast<int>(node.attrs.get_or<std::int64_t>("axis", 0));
    if (!std::all_of(s.scale.begin(), s.scale.end(), [](double x) { return std::isfinite(x) && x > 0; }))
      return std::nullopt;
    return s;
  }
  const Attr* scale = node.attrs.find("scale");
  const double* number = scale ? std::get_if<double>(scale) : nullptr;
  if (!number || !(std::isfinite(*number) && *number > 0)) return std::nullopt;  // a type holds no other
  s.scale = {*number};
  s.zero_point = {node.attrs.get_or<std::int64_t>("zero_point", 0)};
  return s;
}

// The bounds are dropped where they are the dtype's own.
Scales trimmed(Scales s, DType type) {
  auto whole = range_of(type);
  if (s.lowest <= whole.lowest && s.highest >= whole.highest) s.lowest = s.highest = 0;
  return s;
}

bool foldable(DType type) { return type == DType::i8 || type == DType::i16 || type == DType::i32; }

// Quantised values without a sign that only dequantise reads are as good with one: 128 less, like their zero point.
// Neither TOSA's arithmetic nor the rest of the quantiser knows the unsigned.
void make_signed(Graph& graph) {
  auto read_by = consumers(graph);
  auto less = [](Node& node) {
    for (const char* name : {"zero_point", "quant_min", "quant_max"})
      node.attrs.set(name, node.attrs.get_or<std::int64_t>(name, 0) - 128);
    node.attrs.set("dtype", DType::i8);
  };
  for (Node& node : graph.nodes) {
    if (!is_quantise(node) || graph[node.outputs[0]].type.dtype != DType::u8 || !scales_of(graph, node)) continue;
    const ValueId quantised_value = node.outputs[0];
    const bool has_one_kind_of_reader =
        std::all_of(read_by[quantised_value].begin(), read_by[quantised_value].end(),
                    [&](std::uint32_t r) { return is_dequantise(graph.nodes[r]) && scales_of(graph, graph.nodes[r]); });
    if (!has_one_kind_of_reader || std::count(graph.outputs.begin(), graph.outputs.end(), quantised_value)) continue;
    graph[quantised_value].type.dtype = DType::i8;
    less(node);
    for (std::uint32_t r : read_by[quantised_value]) less(graph.nodes[r]);
  }
}

// Scales flow through calls that hand on one tensor's quantised values, in both directions; through means only
// forwards. What they average may lie far outside of the range that their results need.
class Spreading {
 public:
  explicit Spreading(Graph& graph)
      : g_(graph), made_by_(producers(graph)), read_by_(consumers(graph)), is_output_(graph.values.size(), 0) {
    for (ValueId v : graph.outputs) is_output_[v] = 1;
  }

  void forwards() {
    for (Node& node : g_.nodes) {
      if (!one_tensor(node) || !g_[node.inputs[0]].type.quantised() || !floats(node.outputs[0])) continue;
      if (elements(node) == Elements::computed || puts_other_scalars(node)) continue;
      for (ValueId out : node.outputs) adopt(out, node.inputs[0]);
    }
  }
  void backwards() {
    for (std::size_t n = g_.nodes.size(); n-- > 0;) {
      const Node& node = g_.nodes[n];
      if (!one_tensor(node) || !floats(node.inputs[0]) || !g_[node.outputs[0]].type.quantised()) continue;
      const ValueId in = node.inputs[0];
      // Rounding makes equals of neighbours: where indices are results, too, they are those of the unrounded.
      const auto results =
          std::count_if(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != no_value && used(v); });
      if (results == 1 && made_by_[in] >= 0 && read_by_[in].size() == 1 && !is_output_[in] &&
          elements(node) == Elements::moved)
        adopt(in, node.outputs[0]);
    }
  }

 private:
  bool used(ValueId v) const { return is_output_[v] || !read_by_[v].empty(); }
  bool floats(ValueId v) const { return g_[v].type.dtype == DType::f32 && !g_[v].type.quantised(); }

  // Computing it costs three runs of the call, and networks repeat theirs.
  Elements elements(const Node& node) {
    const Shape& shape = g_[node.inputs[0]].type.shape;
    const bool alone = std::all_of(node.inputs.begin() + 1, node.inputs.end(), [](ValueId v) { return v == no_value; });
    for (const Known& k : known_)
      if (alone && k.op == node.op && k.shape == shape && k.attrs == node.attrs) return k.elements;
    const Elements found = elements_of(g_, node);
    if (alone) known_.push_back({node.op, node.attrs, shape, found});
    return found;
  }

  // Numbers that the operand's quantised values do not reach (a pad with 100 around values below 1).
  bool puts_other_scalars(const Node& node) const {
    const TensorType& x = g_[node.inputs[0]].type;
    if (!x.scales->per_tensor() || node.attrs.size() == 0) return false;
    const tosa::Bounds bounds = reals_of(x);
    return exceeds(g_, node, bounds.lowest, bounds.highest);
  }

  bool one_tensor(const Node& node) const {
    if (!find_aten(node.op).rule->passes_values) return false;
    const auto tensors = std::count_if(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
      return v != no_value && (is_float(g_[v].type.dtype) || g_[v].type.quantised());
    });
    return tensors == 1 && node.inputs[0] != no_value && !node.outputs.empty() && node.outputs[0] != no_value;
  }
  void adopt(ValueId to, ValueId from) {
    if (to == no_value || from == no_value) return;
    TensorType& type = g_[to].type;
    const TensorType& source = g_[from].type;
    if (type.quantised() || type.dtype != DType::f32 || !source.quantised() || !source.scales->per_tensor()) return;
    type.dtype = source.dtype;
    type.scales = source.scales;
  }

  struct Known {
    Operator op;
    Attrs attrs;
    Shape shape;
    Elements elements;
  };
  std::vector<Known> known_;
  Graph& g_;
  std::vector<std::int32_t> made_by_;
  std::vector<std::vector<std::uint32_t>> read_by_;
  std::vector<char> is_output_;
};

// What the program gives as floats, it gives as floats.
void float_outputs(Graph& graph, const std::vector<DType>& declared) {
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId quantised_value = graph.outputs[i];
    const TensorType type = graph[quantised_value].type;
    if (!is_float(declared[i]) || !type.quantised()) continue;
    const ValueId real =
        graph.add_value(std::exchange(graph[quantised_value].name, graph[quantised_value].name + ".codes"),
                        {DType::f32, type.shape, {}});
    graph.nodes.push_back(dequantise_node(type, quantised_value, real, nullptr));
    graph.outputs[i] = real;
  }
}

// The readers of a dequantise take the quantised values.
void fold_dequantise(Graph& graph) {
  Forward same_as;
  for (Node& node : graph.nodes) {
    same_as.operands(node);
    if (!is_dequantise(node)) continue;
    auto scales = scales_of(graph, node);
    ValueId quantised_value = node.inputs[0];
    if (!scales || !foldable(graph[quantised_value].type.dtype)) continue;
    TensorType type = graph[quantised_value].type.with(trimmed(*scales, graph[quantised_value].type.dtype));
    if (!graph[quantised_value].type.quantised() &&
        (graph[quantised_value].is_constant() ||
         std::count(graph.inputs.begin(), graph.inputs.end(), quantised_value))) {
      graph[quantised_value].type = type;
    } else if (graph[quantised_value].is_constant() &&
               graph[quantised_value].type != type) {  // one constant read under two scales
      quantised_value = graph.add_value(graph[node.outputs[0]].name + ".codes", type, graph[quantised_value].constant);
    }
    same_as.set(node.outputs[0], quantised_value);
  }
}

// What a quantise reads gives the quantised values.
void fold_quantise(Graph& graph) {
  auto made_by = producers(graph);
  auto read_by = consumers(graph);
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  Forward given;
  for (Node& node : graph.nodes) {
    given.operands(node);
    if (!is_quantise(node)) continue;
    auto scales = scales_of(graph, node);
    ValueId quantised_value = node.outputs[0], x = node.inputs[0];
    // Of another shape than what it quantises: said where the call is lowered.
    if (!scales || !foldable(graph[quantised_value].type.dtype) ||
        graph[x].type.shape != graph[quantised_value].type.shape)
      continue;
    TensorType type = graph[quantised_value].type.with(trimmed(*scales, graph[quantised_value].type.dtype));
    graph[quantised_value].type = type;
    if (graph[x].is_constant() && (graph[x].type.dtype == DType::f32 || graph[x].type.quantised())) {
      graph[quantised_value].constant = quantise_constant(graph[x], type);
      continue;
    }
    if (graph[x].type.quantised()) {  // from one scale to another, which an identity with two types expresses
      if (graph[x].type == type)
        given.set(quantised_value, x);
      else {
        node.op = aten::op::alias;
        node.attrs = {};
        node.inputs.resize(1);
      }
      continue;
    }
    bool computed =
        made_by[x] >= 0 && !is_dequantise(graph.nodes[static_cast<std::size_t>(made_by[x])]) && !is_output[x];
    if (!computed) continue;
    bool alone = std::all_of(read_by[x].begin(), read_by[x].end(), [&](std::uint32_t r) {
      const Node& reader = graph.nodes[r];
      auto other = scales_of(graph, reader);
      return is_quantise(reader) && other && trimmed(*other, type.dtype) == *type.scales;
    });
    if (!alone) continue;
    graph[x].type = type;
    given.set(quantised_value, x);
  }
  given.outputs(graph);
}

}  // namespace

Status fold_quantisation(Graph& graph) {
  bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op.is_conversion(); });
  if (!any) return {};
  std::vector<DType> declared_outputs;
  for (ValueId v : graph.outputs) declared_outputs.push_back(graph[v].type.dtype);
  make_signed(graph);
  fold_dequantise(graph);
  fold_quantise(graph);
  // Readers that came before their quantise in the list (none in a topological order) need no second look.
  drop_dead(graph);
  Spreading spreading(graph);
  spreading.forwards();
  spreading.backwards();
  float_outputs(graph, declared_outputs);
  return {};
}

}  // namespace tosaic
