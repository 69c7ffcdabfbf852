// SPDX-License-Identifier: Apache-2.0
// Integers that meet floats. What PyTorch turns into floats first, x * torch.arange(8), is a float of its own here: a
// call that computes with scales has no other integers. And the other way round, what goes through floats between
// integers alone, as the numbers of rows that each of some experts gets, stays integers.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "ops/composer.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/trial.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

bool whole(const TensorType& type) { return is_integer(type.dtype) && !type.quantised(); }
bool real(const TensorType& type) { return type.dtype == DType::f32 && !type.quantised(); }

// Does the lowering read operand i as floats, and in no other way?
bool converted(const Graph& graph, const Node& node, std::size_t i) {
  const auto computed = [&](std::size_t at, TensorType&, Bytes& elements) {
    if (at == i) elements = {};
  };
  const auto trial = try_node(graph, node, {.operand = computed});
  if (!trial.ok()) return false;
  std::vector<char> same(trial->graph.values.size(), 0);
  same[trial->operands[i]] = 1;
  bool any = false;
  for (const Node& made : trial->graph.nodes) {
    if (std::ranges::none_of(made.inputs, [&](ValueId v) { return v != no_value && same[v]; })) continue;
    const ValueId y = made.outputs[0];
    if (made.op == tosa::op::cast && is_float(trial->graph[y].type.dtype))
      any = true;
    else if (made.op == tosa::op::reshape)
      same[y] = 1;
    else
      return false;
  }
  return any;
}

class WholeNumbers {
 public:
  explicit WholeNumbers(Graph& graph) : graph_(graph), out_(graph), b_(graph) {}

  void run() {
    for (Node& node : out_.nodes()) {
      b_.set_loc(node.loc);
      if (!stays_whole(node)) {
        reals_among(node);
        out_.keep(std::move(node));
      }
    }
    drop_dead_nodes(graph_);  // floats that nobody reads any more
  }

 private:
  Val as(ValueId v, DType dtype) { return b_.aten(aten::op::_to_copy, {b_.value(v)}, {{"dtype", dtype}}); }

  void reals_among(Node& node) {
    const Rule rule = find_aten(node.op).rule;
    const auto is = [&](ValueId v, bool (*kind)(const TensorType&)) { return v != no_value && kind(graph_[v].type); };
    if (!rule->quantises() || rule->is_composite || node.outputs.empty() || !is(node.outputs[0], real) ||
        std::ranges::none_of(node.inputs, [&](ValueId v) { return is(v, real); }))
      return;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (!is(v, whole) || !converted(graph_, node, i)) continue;
      auto [known, fresh] = reals_.try_emplace(v, no_value);
      if (fresh) known->second = as(v, DType::f32).id();
      node.inputs[i] = known->second;
    }
  }

  // The integers that v holds as floats: i32 that a float distinguishes, as counts and places are.
  std::optional<ValueId> held(ValueId v) const {
    const auto it = v == no_value ? whole_.end() : whole_.find(v);
    return it == whole_.end() ? std::nullopt : std::optional(it->second);
  }

  // Said anew for the integers behind its operand.
  bool stays_whole(Node& node) {
    const bool one = node.inputs.size() == 1 && node.outputs.size() == 1 && node.outputs[0] != no_value;
    if (!one || !node.regions.empty()) return false;
    const ValueId v = node.inputs[0], y = node.outputs[0];
    if (node.op == aten::op::_to_copy || node.op == aten::op::to_dtype) {
      if (v != no_value && graph_[v].type.dtype == DType::i32 && whole(graph_[v].type) && real(graph_[y].type))
        whole_[y] = v;
    }
    const auto from = held(v);
    if (!from) return false;
    if (graph_[y].type.dtype == DType::i32 && whole(graph_[y].type)) {
      Node call = node;
      call.inputs = {*from};
      const auto trial = try_node(graph_, call);
      if (!trial.ok() || trial->graph[trial->results.at(0)].type != graph_[y].type) return false;
      node.inputs = call.inputs;
      return false;
    }
    if (node.op != aten::op::histc) return false;
    return unless_refused([&]() -> Status {
             const Val counts = b_.aten(node.op, {b_.value(*from)}, node.attrs);
             whole_[y] = counts.id();
             out_.add(aten::op::_to_copy, {counts.id()}, {{"dtype", DType::f32}}, y, node.loc);
             return {};
           })
        .ok();
  }

  Graph& graph_;
  Rewriter out_;
  Composer b_;
  std::map<ValueId, ValueId> reals_;  // of integers
  std::map<ValueId, ValueId> whole_;  // of floats
};

}  // namespace

void whole_numbers(Graph& graph, std::vector<char>& inner) {
  WholeNumbers(graph).run();
  inner.resize(graph.values.size(), 1);
}

}  // namespace tosaic
