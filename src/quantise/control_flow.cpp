// SPDX-License-Identifier: Apache-2.0
#include "quantise/control_flow.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/states.h"
#include "ir/tensor.h"
#include "lower/lower.h"
#include "ops/computed.h"
#include "ops/lowering/conversion.h"

namespace tosaic {
namespace {

bool real(const Value& v) { return is_float(v.type.dtype) && !v.type.quantised(); }
bool alike(const TensorType& a, const TensorType& b) { return a.dtype == b.dtype && a.scales == b.scales; }
bool quantises(const Graph& graph, const Node& node) {
  return node.op.overload_of(quantized_decomposed::op::quantize_per_tensor) && graph[node.outputs[0]].type.quantised();
}
bool dequantises(const Graph& graph, const Node& node) {
  return node.op.overload_of(quantized_decomposed::op::dequantize_per_tensor) && graph[node.inputs[0]].type.quantised();
}

using Met = std::vector<TensorType>;

// Steps of 2^-27 of the largest magnitude: finer than the floats that they stand for. There is room for what is four
// times as large and only handed on, and RESCALE takes them.
constexpr std::int64_t known_quantised = 1 << 27, fine_quantised = 1 << 29;
TensorType fine(double reach) {
  return {DType::i32, {}, Scales{{reach / known_quantised}, {0}, -1, -fine_quantised, fine_quantised}};
}
double known_reach(const TensorType& type) {
  return type.dtype == DType::i32 ? type.scales->scale[0] * known_quantised : reach_of(type);
}

std::optional<TensorType> common(const Met& met) {
  if (met.empty()) return std::nullopt;
  if (std::ranges::all_of(met, [&](const TensorType& t) { return alike(t, met[0]); })) return met[0];
  double reach = 0;
  for (const TensorType& type : met) reach = std::max(reach, known_reach(type));
  return fine(reach);
}

// How the nodes of a graph read each value of reals: as quantised values of these types, and otherwise.
struct Reads {
  Met quantised_as;
  bool otherwise = false;
};
std::vector<Reads> reads_of(const Graph& graph) {
  std::vector<Reads> reads(graph.values.size());
  for (const Node& node : graph.nodes)
    for (ValueId v : node.inputs) {
      if (v == no_value) continue;
      if (quantises(graph, node))
        reads[v].quantised_as.push_back(graph[node.outputs[0]].type);
      else
        reads[v].otherwise = true;
    }
  return reads;
}

// Reals as their quantised values in a graph that is being written.
class Recoding {
 public:
  Recoding(Graph& graph, Rewriter& out) : graph_(graph), out_(out) {}
  void known(ValueId real, ValueId quantised_value) { quantised_values_[real] = quantised_value; }
  bool knows(ValueId real) const { return quantised_values_.contains(real); }
  const TensorType& type(ValueId real) const { return graph_[quantised_values_.at(real)].type; }

  // The node gives quantised values of what is quantised: a change of scale, or nothing.
  void quantise(const Node& node) {
    const ValueId from = quantised_values_.at(node.inputs[0]), to = node.outputs[0];
    if (graph_[from].type == graph_[to].type)
      out_.replace(to, from);
    else
      out_.add(aten::op::alias, {from}, {}, to, node.loc);
  }

  // The value quantised to this type; a real is quantised here.
  ValueId in_codes(ValueId v, TensorType type, const LocRef& loc) {
    type = type.with(graph_[v].type.shape);
    const std::string name = graph_[v].name + ".handed";
    if (graph_[v].is_constant()) return graph_.add_value(name, type, quantise_constant(graph_[v], type));
    const ValueId from = knows(v) ? quantised_values_.at(v) : no_value;
    if (from != no_value && graph_[from].type == type) return from;
    const ValueId quantised_value = graph_.add_value(name, type);
    if (from != no_value)
      out_.add(aten::op::alias, {from}, {}, quantised_value, loc);
    else
      out_.keep(quantise_node(type, v, quantised_value, loc));
    return quantised_value;
  }

 private:
  Graph& graph_;
  Rewriter& out_;
  std::map<ValueId, ValueId> quantised_values_;
};

// What a body computes, or is given, as reals, the first of it; empty: nothing. Of what stays as it is in the body,
// the reason.
std::string needs_floats(const Graph& graph, bool condition = false) {
  const std::vector<char> used = used_values(graph);
  const auto found = [&](ValueId v) { return v != no_value && used[v] && real(graph[v]); };
  const auto said = [&](ValueId v) {
    return fmt::format("'{}'{}", graph[v].name,
                       condition ? ", by which the loop goes on or ends, is a float" : " is computed as floats");
  };
  for (const Node& node : graph.nodes) {
    if (const std::string* inner = find_mark(node, mark::floats)) return *inner;
    for (std::size_t b = 0; b < node.regions.size(); ++b)
      if (auto why = needs_floats(node.regions[b], b == 0 && node.op == higher_order::op::while_loop); !why.empty())
        return why;
    if (const auto v = std::ranges::find_if(node.outputs, found); v != node.outputs.end()) return said(*v);
  }
  const auto v = std::ranges::find_if(graph.inputs, found);
  return v == graph.inputs.end() ? "" : said(*v);
}

// One branch or loop. Places: the operands behind a branch's condition, which its bodies take in this order, and its
// results. What a loop carries from turn to turn is one place.
class Flow {
 public:
  Flow(const Graph& graph, const Node& node, const std::vector<Reads>& reads, const Recoding& outside)
      : graph_(graph),
        node_(node),
        loop_(node.op == higher_order::op::while_loop),
        operands_(node.inputs.begin() + (loop_ ? 0 : 1), node.inputs.end()),
        position_(operands_.size() + node.outputs.size()),
        met_(position_.size()) {
    for (const Graph& body : node.regions) in_body_.push_back(reads_of(body));
    std::iota(position_.begin(), position_.end(), 0);
    if (loop_) join_carried();
    meet(reads, outside);
  }

  // The node between quantised values; empty: `why` says what needs floats.
  std::optional<Node> quantised_node(const tosa::Spec& spec, std::string& why) const {
    Node made = node_;
    for (std::size_t p = 0; p < position_.size(); ++p)
      if (real(at(p)) && !type(p)) {
        why = fmt::format("'{}' is float, and no scale is known for it", at(p).name);
        return std::nullopt;
      }
    for (std::size_t b = 0; b < made.regions.size(); ++b) {
      const bool condition = loop_ && b == 0;
      if (!code(made.regions[b], condition, why)) return std::nullopt;
      why = needs_floats(made.regions[b], condition);
      if (!why.empty()) return std::nullopt;
    }
    if (const Status taken = takes(spec, made); !taken.ok()) {
      why = taken.error().notes.empty() ? taken.error().message : taken.error().notes[0];
      return std::nullopt;
    }
    return made;
  }
  std::optional<TensorType> operand(std::size_t i) const { return real(at(i)) ? type(i) : std::nullopt; }
  std::optional<TensorType> result(std::size_t k) const { return operand(operands_.size() + k); }

 private:
  const Value& at(std::size_t position) const {
    return graph_[position < operands_.size() ? operands_[position] : node_.outputs[position - operands_.size()]];
  }
  std::optional<TensorType> type(std::size_t position) const { return common(met_[position_[position]]); }
  void meet(std::size_t position, const Met& more) {
    Met& met = met_[position_[position]];
    met.insert(met.end(), more.begin(), more.end());
  }

  // The operand that the body hands on as this result.
  static std::optional<std::size_t> handed_on(const Graph& body, std::size_t result) {
    const auto found = std::ranges::find(body.inputs, body.outputs[result]);
    if (found == body.inputs.end()) return std::nullopt;
    return static_cast<std::size_t>(found - body.inputs.begin());
  }

  void join_carried() {
    const auto join = [&](std::size_t a, std::size_t b) {
      std::ranges::replace(position_, std::size_t{position_[a]}, std::size_t{position_[b]});
    };
    for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
      join(operands_.size() + k, k);
      if (const auto i = handed_on(node_.regions[1], k)) join(*i, k);
    }
  }

  void meet(const std::vector<Reads>& reads, const Recoding& outside) {
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const bool carried = loop_ && i < node_.outputs.size();
      if (!carried && outside.knows(operands_[i])) {
        meet(i, {outside.type(operands_[i])});
        continue;
      }
      for (std::size_t b = 0; b < in_body_.size(); ++b) meet(i, in_body_[b][node_.regions[b].inputs[i]].quantised_as);
    }
    for (std::size_t k = 0; k < node_.outputs.size(); ++k) {
      const std::size_t position = operands_.size() + k;
      const Reads& behind = reads[node_.outputs[k]];
      if (const auto read = common(behind.quantised_as);
          !loop_ && read && !behind.otherwise && alike(*read, behind.quantised_as[0]))
        meet(position, {*read});
      else
        for (std::size_t b = loop_ ? 1 : 0; b < node_.regions.size(); ++b) meet(position, given(node_.regions[b], k));
    }
    // What nothing reads in a branch but who gets it.
    for (std::size_t k = 0; k < node_.outputs.size(); ++k)
      for (const Graph& body : node_.regions)
        if (const auto i = loop_ ? std::nullopt : handed_on(body, k); i && !type(*i))
          if (const auto given_as = type(operands_.size() + k)) meet(*i, {*given_as});
  }

  // Of which quantised values a body makes a result.
  Met given(const Graph& body, std::size_t k) const {
    const ValueId v = body.outputs[k];
    if (body[v].is_constant()) {
      double reach = 0;
      for (std::size_t e = 0; real(body[v]) && e < static_cast<std::size_t>(body[v].type.shape.elements()); ++e)
        reach = std::max(reach, std::fabs(element_as_double(body[v].type.dtype, body[v].constant.data(), e)));
      return reach > 0 && std::isfinite(reach) ? Met{fine(reach)} : Met();  // zeros are in all quantised values
    }
    if (const auto i = handed_on(body, k)) {
      const auto known = loop_ ? std::nullopt : type(*i);
      return known ? Met{*known} : Met();
    }
    for (const Node& node : body.nodes)
      if (node.outputs[0] == v && dequantises(body, node)) return {body[node.inputs[0]].type};
    return {};
  }

  Status takes(const tosa::Spec& spec, Node call) const {
    Graph alone;
    const auto put = [&](ValueId& v, const std::optional<TensorType>& quantised_value) {
      const Value& value = graph_[v];
      v = alone.add_value(value.name, quantised_value ? quantised_value->with(value.type.shape) : value.type,
                          quantised_value ? Bytes() : value.constant);
    };
    if (!loop_) put(call.inputs[0], {});
    for (std::size_t i = 0; i < operands_.size(); ++i) put(call.inputs[i + (loop_ ? 0 : 1)], operand(i));
    for (std::size_t k = 0; k < call.outputs.size(); ++k) put(call.outputs[k], result(k));
    return can_lower(alone, call, std::vector<char>(alone.values.size(), 1), spec);
  }

  bool code(Graph& body, bool condition, std::string& why) const {
    Rewriter out(body);
    Recoding inside(body, out);
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const auto type = operand(i);
      if (!type) continue;
      const ValueId v = body.inputs[i];
      body.inputs[i] = body.add_value(body[v].name + ".handed", type->with(body[v].type.shape));
      inside.known(v, body.inputs[i]);
    }
    out.each([&](Node& node) {
      if (dequantises(body, node)) inside.known(node.outputs[0], node.inputs[0]);
      if (quantises(body, node) && inside.knows(node.inputs[0]))
        inside.quantise(node);
      else
        out.keep(std::move(node));
    });
    for (std::size_t k = 0; !condition && k < body.outputs.size(); ++k) {
      const auto type = result(k);
      if (!type) continue;
      ValueId& v = body.outputs[k];
      if (!body[v].is_constant() && !inside.knows(v)) {
        why = fmt::format("'{}' is computed as floats", body[v].name);
        return false;
      }
      v = inside.in_codes(v, *type, node_.loc);
    }
    drop_dead(body);
    make_names_unique(body);
    return true;
  }

  const Graph& graph_;
  const Node& node_;
  const bool loop_;
  const std::vector<ValueId> operands_;
  std::vector<std::size_t> position_;  // that of each operand and each result
  std::vector<Met> met_;               // per place
  std::vector<std::vector<Reads>> in_body_;
};

}  // namespace

void quantise_control_flow(Graph& graph, const tosa::Spec& spec) {
  if (std::ranges::none_of(graph.nodes, [](const Node& n) { return !n.regions.empty(); })) return;
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) quantise_control_flow(body, spec);
  const StatesAsTensors states(graph);
  std::vector<Reads> reads = reads_of(graph);
  for (ValueId v : graph.outputs) reads[v].otherwise = true;
  Rewriter out(graph);
  Recoding outside(graph, out);
  std::set<ValueId> results;  // that are quantised now
  out.each([&](Node& node) {
    if (dequantises(graph, node)) outside.known(node.outputs[0], node.inputs[0]);
    if (quantises(graph, node) && results.contains(node.inputs[0])) return outside.quantise(node);
    if (!has_mark(node, mark::kept)) return out.keep(std::move(node));
    std::string why;
    const Flow flow(graph, node, reads, outside);
    std::optional<Node> made = flow.quantised_node(spec, why);
    if (!made) {
      set_mark(node, mark::floats, std::move(why));
      return out.keep(std::move(node));
    }
    const std::size_t before = node.op == higher_order::op::cond ? 1 : 0;
    for (std::size_t i = before; i < made->inputs.size(); ++i)
      if (const auto type = flow.operand(i - before))
        made->inputs[i] = outside.in_codes(made->inputs[i], *type, node.loc);
    std::size_t k = 0;
    out.keep(
        *std::move(made),
        [&](ValueId v) {
          const auto type = flow.result(k++);
          if (!type) return v;
          const ValueId quantised_value = graph.add_value(graph[v].name + ".handed", type->with(graph[v].type.shape));
          outside.known(v, quantised_value);
          results.insert(v);
          return quantised_value;
        },
        [&](ValueId quantised_value, ValueId v, const LocRef& loc) {
          out.keep(dequantise_node(graph[quantised_value].type, quantised_value, v, loc));
        });
  });
  states.restore(graph);
  drop_dead(graph);
  make_names_unique(graph);
}

}  // namespace tosaic
