// SPDX-License-Identifier: Apache-2.0
#include "lower/unsigned_bytes.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ir/tosa_operators.h"
#include "ops/builder.h"

namespace tosaic {
namespace {

bool is_unsigned(const Graph& graph, ValueId v) { return v != no_value && graph[v].type.dtype == DType::u8; }

// Do the node's results follow from bits alone, whatever numbers they are?
bool moves_bits(const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  if (!op) return false;
  return op->moves >= tosa::Moves::chosen || tosa::is_bitwise(node.op) ||
         (node.op == tosa::op::resize && node.attrs.get_or<std::string>("mode", "") == "nearest");
}

// The same numbers in a wider type; `bytes`: of i8 that is read without a sign.
Val widened(Builder& b, Val x, DType to, bool bytes) {
  const Val multiplier =
      b.constant({DType::i32, Shape{1}, {}}, constant_bytes(DType::i32, std::vector<std::int64_t>{1 << 30}));
  const Val shift = b.constant({DType::i8, Shape{1}, {}}, constant_bytes(DType::i8, std::vector<std::int64_t>{30}));
  return b.tosa_all(tosa::op::rescale,
                    {x, multiplier, shift, b.filled(0, x.dtype(), Shape{1}), b.filled(0, to, Shape{1})},
                    {{"scale32", true},
                     {"rounding_mode", std::string("single_round")},
                     {"per_channel", false},
                     {"input_unsigned", bytes},
                     {"output_unsigned", false}},
                    to)[0];
}

// 0..255 of bytes that are read as -128..127.
Val numbers_of(Builder& b, Val bytes, DType to, const tosa::Spec& spec) {
  if (to == DType::boolean || to == DType::i8) return to == DType::i8 ? bytes : b.cast(bytes, to);
  // RESCALE reads bytes without a sign, but not into i32; rescales by 1 merge with the one that follows.
  if (!spec.has(tosa::Feature::pro_fp)) return widened(b, widened(b, bytes, DType::i16, true), to, false);
  if (spec.has(tosa::Feature::pro_int)) {
    const Val wide = b.cast(bytes, DType::i32);
    return b.cast(b.binary(tosa::op::bitwise_and, wide, b.scalar(255, DType::i32)), to);
  }
  const Val real = b.cast(bytes, is_float(to) ? to : DType::f32);
  const Val below = b.binary(tosa::op::greater, b.like(real, 0.0), real);
  return b.cast(b.select(below, b.add(real, 256.0), real), to);
}

class Unsigned {
 public:
  Unsigned(Graph& graph, const tosa::Spec& spec) : graph_(graph), spec_(spec) {}

  void run() {
    if (std::ranges::none_of(graph_.values, [](const Value& v) { return v.type.dtype == DType::u8; })) return;
    const auto concerned = [&](const Node& node) {
      return std::ranges::any_of(node.inputs, [&](ValueId v) { return is_unsigned(graph_, v); }) ||
             std::ranges::any_of(node.outputs, [&](ValueId v) { return is_unsigned(graph_, v); });
    };
    if (std::ranges::any_of(graph_.nodes, [&](const Node& node) {
          return concerned(node) && node.op != tosa::op::cast && !moves_bits(node);
        }))
      return;
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    // Settled before anything is rewritten: a value has as many readers as it likes.
    for (ValueId v = 0; v < graph_.values.size(); ++v)
      if (is_unsigned(graph_, v)) bytes_.insert(v);
    for (ValueId v : bytes_) graph_[v].type.dtype = DType::i8;
    for (Node& node : before) {
      if (node.op == tosa::op::cast && (bytes_.contains(node.inputs[0]) || bytes_.contains(node.outputs[0])))
        convert(node);
      else
        graph_.nodes.push_back(std::move(node));
    }
  }

 private:
  void convert(const Node& node) {
    const ValueId from = node.inputs[0], to = node.outputs[0];
    Builder b(graph_, &spec_);
    b.fold(false);
    b.set_loc(node.loc);
    const DType wanted = graph_[to].type.dtype;
    const Val x(&b, from);
    const Val y = bytes_.contains(from) ? numbers_of(b, x, wanted, spec_) : wanted == x.dtype() ? x : b.cast(x, wanted);
    if (y.id() == from || y.id() + 1 != graph_.values.size()) {
      graph_.nodes.push_back({tosa::op::identity, {y.id()}, {}, {to}, node.loc, {}});
      return;
    }
    graph_.nodes.back().outputs = {to};  // in place of its own
    graph_.values.pop_back();
  }

  Graph& graph_;
  const tosa::Spec& spec_;
  std::unordered_set<ValueId> bytes_;  // of the values, those that are bytes without a sign
};

}  // namespace

void take_unsigned_as_bytes(Graph& graph, const tosa::Spec& spec) { Unsigned(graph, spec).run(); }

}  // namespace tosaic
