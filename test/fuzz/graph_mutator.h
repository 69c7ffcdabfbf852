// SPDX-License-Identifier: Apache-2.0
// Makes well-formed programs inconsistent: shapes, dtypes, operands, arity, arguments, operators, results. Used by the
// fuzzer of the stages and by a seeded test.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"

namespace tosaic::test {

class Mutator {
 public:
  // `operators`: what an operator may become.
  Mutator(unsigned seed, std::vector<std::string> operators) : random_(seed), operators_(std::move(operators)) {}

  void change(Graph& g) {
    if (g.nodes.empty() || g.values.empty()) return;
    switch (pick(9)) {
      case 7: return symbol(g[static_cast<ValueId>(pick(g.values.size()))]);
      case 8: return state(g);
      case 0: return shape(g[static_cast<ValueId>(pick(g.values.size()))]);
      case 1: return dtype(g[static_cast<ValueId>(pick(g.values.size()))]);
      case 2: return operand(g, node(g));
      case 3: return arity(node(g));
      case 4: return argument(node(g));
      case 5: node(g).op = Operator(operators_[pick(operators_.size())]); return;
      default: return results(g, node(g));
    }
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }
  Node& node(Graph& g) { return g.nodes[pick(g.nodes.size())]; }

  void symbol(Value& v) {
    if (v.is_constant() || v.type.rank() == 0) return;
    const int i = static_cast<int>(pick(static_cast<std::size_t>(v.type.rank())));
    const Dim u0 = Symbol{"u0", {0, v.type.shape[i].bounds().highest.value_or(0) + 1}};
    v.type.shape.set(i, pick(2) ? u0 : 2 * u0);
  }
  // A buffer in place of an operand or an input.
  void state(Graph& g) {
    std::vector<ValueId> made;
    for (const Node& n : g.nodes)
      for (ValueId v : n.outputs)
        if (v != no_value) made.push_back(v);
    if (made.empty()) return;
    const ValueId written = made[pick(made.size())];
    const std::string name = fmt::format("state{}", g.values.size());
    const ValueId held = g.add_value(name, g[written].type);
    g.states.push_back({name, held, written});
    Node& reader = node(g);
    if (!reader.inputs.empty()) reader.inputs[pick(reader.inputs.size())] = held;
  }
  void shape(Value& v) {
    if (!v.type.shape.is_static()) return;
    auto dims = v.type.shape.sizes();
    switch (pick(5)) {
      case 0: dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(pick(dims.size() + 1)), 1 + pick(3)); break;
      case 1:
        if (!dims.empty()) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(pick(dims.size())));
        break;
      case 2:
        if (!dims.empty()) dims[pick(dims.size())] = static_cast<std::int64_t>(pick(9));
        break;
      case 3: std::reverse(dims.begin(), dims.end()); break;
      default: dims.clear();
    }
    v.type.shape = Shape(std::move(dims));
    refill(v);
  }
  void dtype(Value& v) {
    constexpr DType all[] = {DType::boolean, DType::i8,  DType::u8,  DType::i16, DType::i32,
                             DType::i64,     DType::f16, DType::f32, DType::f64, DType::bf16};
    v.type.dtype = all[pick(std::size(all))];
    refill(v);
  }
  static void refill(Value& v) {
    if (v.is_constant()) v.constant = Bytes::of(std::vector<std::byte>(v.type.storage_bytes(), std::byte{1}));
  }
  // Another value, which keeps the order: an earlier one, an input or a constant.
  void operand(Graph& g, Node& n) {
    if (n.inputs.empty()) return;
    const auto made_by = producers(g);
    const auto here = static_cast<std::int32_t>(&n - g.nodes.data());
    const auto v = static_cast<ValueId>(pick(g.values.size()));
    if (made_by[v] < here) n.inputs[pick(n.inputs.size())] = v;
  }
  void arity(Node& n) {
    if (n.inputs.empty()) return;
    const std::size_t at = pick(n.inputs.size());
    switch (pick(3)) {
      case 0: n.inputs.erase(n.inputs.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: n.inputs.push_back(n.inputs[at]); break;
      default: n.inputs[at] = no_value;
    }
  }
  Attr other(const Attr& attr) {
    if (std::holds_alternative<std::int64_t>(attr)) return static_cast<std::int64_t>(pick(12)) - 4;
    if (std::holds_alternative<double>(attr)) return pick(2) ? Attr(-0.5) : Attr(std::int64_t{3});
    if (const auto* b = std::get_if<bool>(&attr)) return !*b;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&attr)) {
      auto list = *l;
      if (list.empty() || pick(3) == 0)
        list.push_back(1);
      else if (pick(2))
        list.pop_back();
      else
        list[pick(list.size())] = static_cast<std::int64_t>(pick(12)) - 4;
      return list;
    }
    if (std::holds_alternative<DType>(attr)) return DType::i8;
    if (pick(2)) return std::vector<SymbolicArgument>{{"", Dim(2)}, {"u0", Dim(Symbol{"u0", {0, 4}})}};
    return SymbolicArgument{"s0"};
  }
  void argument(Node& n) {
    if (n.attrs.size() == 0) return n.attrs.set("dim", static_cast<std::int64_t>(pick(9)) - 4);
    const auto& [name, value] = *(n.attrs.begin() + static_cast<std::ptrdiff_t>(pick(n.attrs.size())));
    const std::string which = name;
    n.attrs.set(which, pick(6) ? other(value) : Attr());
  }
  void results(Graph& g, Node& n) {
    if (n.outputs.empty() || pick(2)) {
      n.outputs.push_back(g.add_value(fmt::format("extra{}", g.values.size()), {DType::f32, {2}, {}}));
    } else if (std::count(g.outputs.begin(), g.outputs.end(), n.outputs.back()) == 0) {
      n.outputs.back() = no_value;
    }
  }

  std::mt19937 random_;
  std::vector<std::string> operators_;
};

}  // namespace tosaic::test
