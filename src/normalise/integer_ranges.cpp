// SPDX-License-Identifier: Apache-2.0
#include "normalise/integer_ranges.h"

#include <algorithm>
#include <initializer_list>

#include "ir/tensor.h"

namespace tosaic {
namespace {

using Interval = IntegerInterval;
__extension__ typedef __int128 Int128;

std::int64_t saturated(Int128 v) { return static_cast<std::int64_t>(std::clamp<Int128>(v, INT64_MIN, INT64_MAX)); }
// From the least to the greatest of some numbers.
Interval spanning(std::initializer_list<Int128> ends) { return {saturated(std::min(ends)), saturated(std::max(ends))}; }
Interval joined(const Interval& a, const Interval& b) {
  return {std::min(a.lowest, b.lowest), std::max(a.highest, b.highest)};
}

Interval of_type(DType type) {
  if (type == DType::boolean) return {0, 1};
  if (!is_integer(type)) return {};
  const IntegerRange range = range_of(type);
  return {range.lowest, range.highest};
}

Interval of_constant(const Value& value) {
  if (is_float(value.type.dtype) || value.type.shape.elements() == 0) return {};
  Interval found{INT64_MAX, INT64_MIN};
  const auto count = static_cast<std::size_t>(value.type.shape.elements());
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t element = element_as_integer(value.type.dtype, value.constant.data(), i);
    found = {std::min(found.lowest, element), std::max(found.highest, element)};
  }
  return found;
}

Interval product(const Interval& a, const Interval& b) {
  return spanning({Int128{a.lowest} * b.lowest, Int128{a.lowest} * b.highest, Int128{a.highest} * b.lowest,
                   Int128{a.highest} * b.highest});
}

// The longest run of ones that holds both ends: what AND, OR and XOR of numbers that are not negative stay within.
Interval of_bits(const Interval& a, const Interval& b) {
  if (a.lowest < 0 || b.lowest < 0) return spanning({a.lowest, a.highest, b.lowest, b.highest, -1, 0});
  std::uint64_t all = static_cast<std::uint64_t>(a.highest) | static_cast<std::uint64_t>(b.highest);
  for (int shift = 1; shift < 64; shift *= 2) all |= all >> shift;
  return {0, static_cast<std::int64_t>(all)};
}

class Ranges {
 public:
  Ranges(const Graph& graph, std::vector<Interval> known) : g_(graph), of_(std::move(known)) {}

  std::vector<Interval> run() {
    for (const Node& node : g_.nodes) {
      bool assumed = false;
      for (ValueId v : node.inputs) assumed |= v != no_value && of_[v].assumed;
      for (ValueId v : node.outputs) {
        const Interval whole = of_type(g_[v].type.dtype);
        of_[v] = node.outputs.size() == 1 ? result(node, whole) : whole;
        of_[v].assumed = assumed;
      }
    }
    return std::move(of_);
  }

 private:
  Interval in(const Node& node, std::size_t i) const { return of_[node.inputs[i]]; }

  Interval result(const Node& node, const Interval& whole) const {
    if (!is_integer(g_[node.outputs[0]].type.dtype)) return whole;
    const Operator op = node.op;
    if (op == tosa::op::cast) return cast(node, whole);
    if (is_float(g_[node.inputs[0]].type.dtype)) return whole;
    if (auto moved = movement(op, node)) return *moved;
    if (auto computed = arithmetic(op, node)) return *computed;
    return whole;
  }

  // What moves elements, or chooses among them.
  std::optional<Interval> movement(Operator op, const Node& node) const {
    for (const Operator one :
         {tosa::op::reshape, tosa::op::transpose, tosa::op::slice, tosa::op::tile, tosa::op::reverse,
          tosa::op::identity, tosa::op::gather, tosa::op::reduce_max, tosa::op::reduce_min, tosa::op::max_pool2d})
      if (op == one) return in(node, 0);
    if (op == tosa::op::select) return joined(in(node, 1), in(node, 2));
    if (op == tosa::op::pad || op == tosa::op::scatter) return joined(in(node, 0), in(node, 2));
    if (op != tosa::op::concat) return std::nullopt;
    Interval all = in(node, 0);
    for (std::size_t i = 1; i < node.inputs.size(); ++i) all = joined(all, in(node, i));
    return all;
  }

  std::optional<Interval> arithmetic(Operator op, const Node& node) const {
    const Interval a = in(node, 0), b = node.inputs.size() > 1 ? in(node, 1) : a;
    if (op == tosa::op::add) return spanning({Int128{a.lowest} + b.lowest, Int128{a.highest} + b.highest});
    if (op == tosa::op::sub) return spanning({Int128{a.lowest} - b.highest, Int128{a.highest} - b.lowest});
    if (op == tosa::op::mul) return product(a, b);
    if (op == tosa::op::negate) return spanning({-Int128{a.lowest}, -Int128{a.highest}});
    if (op == tosa::op::abs)
      return spanning({-Int128{a.lowest}, Int128{a.lowest}, Int128{a.highest}, a.lowest <= 0 ? 0 : Int128{a.highest}});
    if (op == tosa::op::intdiv) return spanning({a.lowest, a.highest, -Int128{a.lowest}, -Int128{a.highest}});
    if (op == tosa::op::maximum) return Interval{std::max(a.lowest, b.lowest), std::max(a.highest, b.highest)};
    if (op == tosa::op::minimum) return Interval{std::min(a.lowest, b.lowest), std::min(a.highest, b.highest)};
    if (op == tosa::op::clamp) {
      const auto low = node.attrs.get_or<std::int64_t>("min_val", INT64_MIN),
                 high = node.attrs.get_or<std::int64_t>("max_val", INT64_MAX);
      return Interval{std::clamp(a.lowest, low, high), std::clamp(a.highest, low, high)};
    }
    if (op == tosa::op::reduce_sum) {
      const auto axis = static_cast<int>(node.attrs.get_or<std::int64_t>("axis", 0));
      const Dim size = g_[node.inputs[0]].type.shape[axis];
      const std::int64_t n = size.bounds().highest.value_or(INT64_MAX);
      // As many as that, or as few as one; of a size that is no number perhaps none.
      const Int128 fewest = size.is_number() ? Int128{a.lowest} : Int128{0};
      return spanning({Int128{a.lowest} * n, Int128{a.highest} * n, a.lowest, a.highest, fewest});
    }
    if (op == tosa::op::argmax) {
      const auto largest = g_[node.inputs[0]].type.shape.upper();
      return Interval{0, largest ? largest->elements() : INT64_MAX};
    }
    if (op == tosa::op::bitwise_and || op == tosa::op::bitwise_or || op == tosa::op::bitwise_xor) return of_bits(a, b);
    if (op == tosa::op::bitwise_not) return spanning({~a.lowest, ~a.highest});
    if (op == tosa::op::arithmetic_right_shift || op == tosa::op::logical_right_shift)
      return a.lowest >= 0 ? std::optional(Interval{0, a.highest}) : std::nullopt;
    return std::nullopt;
  }

  Interval cast(const Node& node, const Interval& whole) const {
    const DType from = g_[node.inputs[0]].type.dtype;
    if (from == DType::boolean) return {0, 1};
    if (is_float(from)) return whole;
    const Interval a = in(node, 0);
    return a.lowest >= whole.lowest && a.highest <= whole.highest ? a : whole;
  }

  const Graph& g_;
  std::vector<Interval> of_;
};

}  // namespace

std::vector<IntegerInterval> integer_ranges(const Trial& trial, const std::vector<IntegerInterval>& operands) {
  std::vector<Interval> known(trial.graph.values.size());
  for (ValueId v = 0; v < known.size(); ++v)
    known[v] = trial.graph[v].is_constant() ? of_constant(trial.graph[v]) : of_type(trial.graph[v].type.dtype);
  for (std::size_t i = 0; i < trial.operands.size(); ++i)
    if (trial.operands[i] != no_value && !trial.graph[trial.operands[i]].is_constant())
      known[trial.operands[i]] = operands[i];
  return Ranges(trial.graph, std::move(known)).run();
}

}  // namespace tosaic
