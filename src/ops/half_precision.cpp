// SPDX-License-Identifier: Apache-2.0
#include "ops/half_precision.h"

#include "ir/tosa_operators.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

namespace tosaic::half_precision {
namespace {

using Operands = std::vector<std::optional<Val>>;

// A constant of as many elements is converted by a node: who can take it in half precision (f16_of) leaves it as it is.
constexpr std::int64_t large = 1 << 12;

bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

// Casts choose among elements, but not those that drop bits.
bool rounds(const Graph& graph, const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  if (!op || node.inputs.empty()) return false;
  if (node.op == tosa::op::cast)
    return storage_size(graph[node.inputs[0]].type.dtype) > storage_size(graph[node.outputs[0]].type.dtype);
  return !op->chooses();
}

// How often an element has been rounded to 16 bits at most, behind the nodes from `first` on.
int roundings(const Graph& graph, std::size_t first) {
  std::unordered_map<ValueId, int> behind;
  int most = 0;
  for (std::size_t n = first; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    int times = 0;
    for (ValueId v : node.inputs)
      if (const auto found = behind.find(v); found != behind.end()) times = std::max(times, found->second);
    for (ValueId v : node.outputs) {
      behind[v] = times + (is_half(graph[v].type.dtype) && rounds(graph, node) ? 1 : 0);
      most = std::max(most, behind[v]);
    }
  }
  return most;
}

bool exact(double value, DType half) {
  const Bytes bytes = constant_bytes(half, std::vector<double>{value});
  return element_as_double(half, bytes.data(), 0) == value;
}

// A number together with a tensor of half precision stays what it is until the result is rounded.
bool numbers_are_exact(const Attrs& attrs, DType half) {
  return std::ranges::all_of(attrs, [&](const auto& named) {
    if (const auto* real = std::get_if<double>(&named.second)) return exact(*real, half);
    const auto* whole = std::get_if<std::int64_t>(&named.second);
    return !whole || exact(static_cast<double>(*whole), half);
  });
}

// A number that the call computed (1/3 of a division by 3) and that fills a half's mantissa has been rounded to it.
bool computed_numbers_are_short(const Graph& graph, std::size_t first) {
  for (std::size_t v = first; v < graph.values.size(); ++v) {
    const auto& [type, constant] = std::tie(graph.values[v].type, graph.values[v].constant);
    if (constant.null() || !is_half(type.dtype) || !type.shape.is_static() || type.shape.elements() != 1) continue;
    int exponent = 0;
    const double mantissa = std::frexp(element_as_double(type.dtype, constant.data(), 0), &exponent);
    const double kept = std::ldexp(mantissa, type.dtype == DType::f16 ? 6 : 4);
    if (std::isfinite(mantissa) && kept != std::floor(kept)) return false;
  }
  return true;
}

Val widened(Builder& b, Val x) {
  if (!x.is_constant() || x.shape().elements() < large) return b.cast(x, DType::f32);
  Graph& graph = b.graph();
  const ValueId wide = graph.add_value(graph[x.id()].name + ".f32", x.type().with(DType::f32));
  graph.nodes.push_back({tosa::op::cast, {x.id()}, {}, {wide}, b.loc(), {}});
  return {&b, wide};
}

std::optional<DType> half_among(const Operands& operands) {
  for (const auto& v : operands)
    if (v && is_half(v->dtype())) return v->dtype();
  return std::nullopt;
}

struct Attempt {
  Builder& b;
  const std::size_t nodes = b.graph().nodes.size(), values = b.graph().values.size();
  void undo() const {
    b.graph().nodes.resize(nodes);
    b.graph().values.resize(values);
  }
};

// nullopt: it cannot be said so, or the target does not take it.
std::optional<std::vector<Val>> in_f32(const Attempt& attempt, Operands operands, Attrs attrs,
                                       const std::vector<DType>& results, const Lower& lower) {
  Builder& b = attempt.b;
  Builder::Scope scope(b);
  scope->wide_from = attempt.nodes;
  for (auto& v : operands)
    if (v && is_half(v->dtype())) v = widened(b, *v);
  for (const auto& [name, attr] : Attrs(attrs))
    if (const auto* type = std::get_if<DType>(&attr); type && is_half(*type)) attrs.set(name, DType::f32);
  std::vector<Val> made;
  try {
    made = lower(std::move(operands), attrs);
  } catch (const Refusal&) { return std::nullopt; }
  for (std::size_t i = 0; i < made.size() && i < results.size(); ++i)
    if (is_half(results[i]) && made[i].dtype() == DType::f32) made[i] = b.cast(made[i], results[i]);
  if (!b.accepts_from(attempt.nodes)) return std::nullopt;
  return made;
}

}  // namespace

std::vector<Val> lowered(Builder& b, const Operands& operands, const Attrs& attrs, const Lower& lower) {
  if (b.call().counted) return lower(operands, attrs);  // a part of the call that is
  Builder::Scope scope(b);
  scope->counted = true;
  const Attempt attempt{b};
  const auto half = half_among(operands);
  std::vector<Val> made = lower(operands, attrs);
  if (!half && std::ranges::none_of(made, [](Val v) { return is_half(v.dtype()); })) return made;
  const int most = roundings(b.graph(), attempt.nodes);
  if (most == 0) return made;
  const bool exact_numbers =
      !half || (numbers_are_exact(attrs, *half) && computed_numbers_are_short(b.graph(), attempt.values));
  if (most == 1 && exact_numbers) return made;
  std::vector<DType> results;
  for (Val v : made) results.push_back(v.dtype());
  attempt.undo();
  if (auto wide = in_f32(attempt, operands, attrs, results, lower)) return *std::move(wide);
  attempt.undo();
  return lower(operands, attrs);
}

std::optional<Val> f16_of(Val x) {
  Builder& b = x.builder();
  if (!b.call().wide_from || x.dtype() != DType::f32) return std::nullopt;
  const Graph& graph = b.graph();
  for (std::size_t n = graph.nodes.size(); n-- > *b.call().wide_from;) {
    const Node& node = graph.nodes[n];
    if (std::ranges::find(node.outputs, x.id()) == node.outputs.end()) continue;
    const Val from(&b, node.inputs.at(0));
    if (node.op == tosa::op::cast) return is_half(from.dtype()) ? std::optional(from) : std::nullopt;
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->keeps_scales()) return std::nullopt;
    std::vector<Val> moved{from};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) moved.emplace_back(&b, node.inputs[i]);
    if (std::any_of(moved.begin() + 1, moved.end(), [](Val v) { return v.dtype() != DType::shape; }))
      return std::nullopt;
    const Attrs attrs = node.attrs;
    const auto half = f16_of(from);
    if (!half) return std::nullopt;
    moved[0] = *half;
    return b.tosa(node.op, std::move(moved), attrs);
  }
  return std::nullopt;
}

}  // namespace tosaic::half_precision
