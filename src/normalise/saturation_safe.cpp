// SPDX-License-Identifier: Apache-2.0
#include "normalise/saturation_safe.h"

#include <algorithm>

#include "normalise/integer_bounds.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// What a value of a trial may be when an operand was saturated: the nearest int32 of what it should be, below or above,
// or anything.
struct Touch {
  bool low = false, high = false, other = false;
  bool any() const { return low || high || other; }
  Touch joined(const Touch& t) const { return {low || t.low, high || t.high, other || t.other}; }
};

class Touched {
 public:
  Touched(const Trial& trial, std::size_t operand) : trial_(trial), of_(trial.graph.values.size()) {
    bounds_ = integer_bounds(trial, std::vector<IntegerBounds>(trial.operands.size()));
    of_[trial.operands[operand]] = {true, true, false};
    for (const Node& node : trial.graph.nodes) safe_ &= follow(node);
  }

  bool safe() const { return safe_; }
  const Touch& of(ValueId v) const { return of_[v]; }

 private:
  bool is_inside(ValueId v) const {
    return !of_[v].any() && bounds_[v].lowest > INT32_MIN && bounds_[v].highest < INT32_MAX;
  }

  // False: it shows in what the node computes.
  bool follow(const Node& node) {
    std::vector<Touch> in;
    for (ValueId v : node.inputs) in.push_back(v == no_value ? Touch{} : of_[v]);
    if (std::ranges::none_of(in, &Touch::any)) return true;
    const tosa::Op* op = tosa::find(node.op);
    if (!op || node.outputs.size() != 1) return false;
    Touch& out = of_[node.outputs[0]];
    const auto is = [&](auto... ops) { return ((node.op == ops) || ...); };
    const DType type = trial_.graph[node.outputs[0]].type.dtype;
    if (is(tosa::op::gather, tosa::op::scatter)) {
      in[1] = {};  // outside the table as before
      for (const Touch& t : in) out = out.joined(t);
    } else if (is(tosa::op::equal, tosa::op::greater, tosa::op::greater_equal)) {
      return !in[0].other && !in[1].other && (is_inside(node.inputs[0]) || is_inside(node.inputs[1]));
    } else if (is(tosa::op::cast)) {
      if (type == DType::boolean) return !in[0].other;
      out = is_integer(type) ? in[0] : Touch{};
      return is_integer(type);
    } else if (is(tosa::op::minimum, tosa::op::maximum)) {
      out = in[0].joined(in[1]);
      const bool bounded = is_inside(node.inputs[0]) || is_inside(node.inputs[1]);
      (is(tosa::op::minimum) ? out.high : out.low) &= !bounded;
    } else if (is(tosa::op::clamp)) {
      out = in[0];
      out.low &= node.attrs.get_or<std::int64_t>("min_val", INT64_MIN) <= INT32_MIN;
      out.high &= node.attrs.get_or<std::int64_t>("max_val", INT64_MAX) >= INT32_MAX;
    } else if (op->keeps_scales() || is(tosa::op::select)) {
      for (const Touch& t : in) out = out.joined(t);
    } else {
      out.other = true;
      return is_integer(type);  // an index that is computed, as long as nothing but GATHER and SCATTER reads it
    }
    return true;
  }

  const Trial& trial_;
  std::vector<Touch> of_;
  std::vector<IntegerBounds> bounds_;
  bool safe_ = true;
};

}  // namespace

Saturated saturated_operand(const Trial& trial, std::size_t operand) {
  const Touched touched(trial, operand);
  Saturated found{touched.safe(), {}, {}};
  for (ValueId v : trial.results) {
    found.passed_on.push_back(touched.of(v).low || touched.of(v).high);
    found.safe &= !touched.of(v).other;
  }
  for (ValueId v = 0; v < trial.graph.values.size(); ++v) found.touched.push_back(touched.of(v).any());
  return found;
}

std::vector<char> saturation_safe(const Graph& graph) {
  std::vector<char> safe(graph.values.size(), 1);
  for (ValueId v : graph.outputs) safe[v] = 0;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto is_wide = [&](ValueId v) {
      return v != no_value && graph[v].type.dtype == DType::i64 && !graph[v].is_constant();
    };
    if (std::ranges::none_of(node->inputs, is_wide)) continue;
    const auto trial = node->regions.empty() ? try_node(graph, *node, {.fold = true}) : Result<Trial>(Diagnostic{});
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      if (!is_wide(node->inputs[i]) || !safe[node->inputs[i]]) continue;
      bool one = trial.ok();
      if (one) {
        const Saturated found = saturated_operand(*trial, i);
        one = found.safe;
        for (std::size_t r = 0; r < node->outputs.size() && r < found.passed_on.size(); ++r)
          if (const ValueId v = node->outputs[r]; found.passed_on[r] && v != no_value)
            one &= graph[v].type.dtype == DType::i64 && safe[v];
      }
      safe[node->inputs[i]] = one;
    }
  }
  return safe;
}

}  // namespace tosaic
