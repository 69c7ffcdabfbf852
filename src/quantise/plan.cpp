// SPDX-License-Identifier: Apache-2.0
#include "quantise/plan.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/tosa_operators.h"
#include "ops/computed.h"
#include "ops/lowering/weight.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/large_pools.h"
#include "quantise/sums_of_shares.h"
#include "quantise/whole_results.h"

namespace tosaic {
namespace {

// Values that share one scale: a union-find over value ids.
class Groups {
 public:
  explicit Groups(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  ValueId find(ValueId v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  void join(ValueId a, ValueId b) { parent_[find(a)] = find(b); }

 private:
  std::vector<ValueId> parent_;
};

// The largest magnitude that the tensors of each group can have.
std::vector<double> largest_known(const QuantisationPlan& plan) {
  std::vector<double> largest(plan.group.size(), 0);
  for (ValueId v = 0; v < plan.group.size(); ++v)
    if (plan.range_counts(v))
      largest[plan.group[v]] =
          std::max({largest[plan.group[v]], std::fabs(plan.bounds[v].lowest), std::fabs(plan.bounds[v].highest)});
  return largest;
}

// A bound, or so little more that a 16-bit multiplier is exactly the scale. Averages by shares (attention) often have
// the scale of what is averaged: the rescale multiplies by that of the shares alone, of which 1 is the commonest.
double held_exactly(double bound) {
  int exponent = 0;
  const double mantissa = std::frexp(bound / 32767, &exponent);
  return 32767 * std::ldexp(std::ceil(std::ldexp(mantissa, 15)), exponent - 15);
}

bool real(const Value& v) { return v.type.dtype == DType::f32 && !v.type.quantised(); }
bool is_set(const std::vector<char>& flags, std::size_t i) { return i < flags.size() && flags[i]; }

// Is the result the input's elements, or always the same part of them (a slice)?
bool moves_elements(const Graph& graph, const Node& node) {
  const auto trial = try_node(graph, node);
  return trial.ok() && std::all_of(trial->graph.nodes.begin(), trial->graph.nodes.end(), [](const Node& n) {
           return n.op == tosa::op::slice || n.op == tosa::op::reshape || n.op == tosa::op::transpose ||
                  n.op == tosa::op::const_shape;
         });
}

// Of which only parts are read, each of which is in its group: what the other elements are does not count. `movers`:
// calls that share the scale of what they read.
void hide_unread(const Graph& graph, const std::vector<std::size_t>& movers,
                 const std::vector<std::vector<std::uint32_t>>& read_by, const std::vector<char>& is_output,
                 std::vector<char>& hidden) {
  std::vector<char> partly(graph.values.size(), 0);
  std::vector<std::size_t> parts(graph.values.size(), 0);  // readers of a part
  for (auto n = movers.rbegin(); n != movers.rend(); ++n) {
    const Node& node = graph.nodes[*n];
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const Shape &whole = graph[x].type.shape, &part = graph[y].type.shape;
    if (node.inputs.size() != 1 || is_output[x] || !whole.is_static() || !part.is_static()) continue;
    const bool smaller = part.elements() < whole.elements();
    if ((smaller || partly[y]) && moves_elements(graph, node) && ++parts[x] == read_by[x].size())
      hidden[x] = partly[x] = 1;
  }
}

// A weight per result, as in a depthwise convolution of size 1: nothing is added up.
bool one_product_each(const Graph& graph, const Node& node) {
  const ValueId w = node.inputs.size() > 1 ? node.inputs[1] : no_value;
  return w != no_value && graph[w].is_constant() && graph[w].type.rank() > 0 &&
         node.attrs.get_or<std::int64_t>("groups", 1) == graph[w].type.shape.elements();
}

// Does the call add up x with factors of one sign, as averages and banks of filters do, and has x one sign as well? The
// sum is small only where all of it is, and then no finer than x.
bool sums_up_one_sign(const Graph& graph, const Node& node, ValueId x, const std::vector<tosa::Bounds>& bounds) {
  const ValueId factors = node.inputs.size() > 1 ? node.inputs[1] : no_value;
  if (factors == no_value || factors == x || !graph[factors].is_constant() || !real(graph[factors]) ||
      (bounds[x].lowest < 0 && bounds[x].highest > 0))
    return false;
  bool above = false, below = false;
  for (float factor : graph[factors].constant.as<float>()) {
    above |= factor > 0;
    below |= factor < 0;
    if (above && below) return false;
  }
  return true;
}

// Which values become integers, and which of them share a scale. `fixed[v]`: the width that is decided for v, if one
// is; where two differ, a rescale stands between.
void plan_groups(const Graph& graph, const UnlikeRanges& unlike_ranges, const std::vector<Form>& fixed,
                 QuantisationPlan& plan) {
  plan.quantised.assign(graph.values.size(), 0);
  plan.hidden.assign(graph.values.size(), 0);
  plan.chosen_from.clear();
  Groups groups(graph.values.size());
  auto read_by = consumers(graph);
  std::vector<char> is_output(graph.values.size(), 0);
  for (ValueId v : graph.outputs) is_output[v] = 1;
  std::vector<std::size_t> movers;
  const auto alike = [&](ValueId a, ValueId b) { return fixed.empty() || fixed[a] == fixed[b]; };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Rule rule = find_aten(node.op).rule;
    if (!computes_quantised(graph, node) || is_set(unlike_ranges.floats, n) || plan.floating(n)) continue;
    // Quantised values can be computed only where every computed float operand has quantised values.
    for (ValueId v : node.inputs)
      if (v != no_value && real(graph[v]) && !graph[v].is_constant()) plan.quantised[v] = 1;
    for (ValueId v : node.outputs)
      if (v != no_value && real(graph[v])) plan.quantised[v] = 1;
    if (node.outputs.empty() || node.outputs[0] == no_value || !real(graph[node.outputs[0]])) continue;
    if (is_set(unlike_ranges.apart, n)) continue;
    if (rule->passes_values) {
      ValueId x = node.inputs[0];
      if (x == no_value) continue;
      if (graph[x].is_constant()) {
        if (real(graph[x])) plan.chosen_from.emplace_back(x, node.outputs[0]);
        continue;
      }
      bool alone = read_by[x].size() == 1 && !is_output[x];
      bool clamping = clamps(graph, node);
      // x keeps its full range, the clamped tensor gets a finer one
      if ((clamping && !alone) || !alike(x, node.outputs[0])) continue;
      if (clamping) plan.hidden[x] = 1;
      if (!clamping && node.outputs.size() == 1) movers.push_back(n);
      for (ValueId v : node.outputs)
        if (v != no_value && real(graph[v])) groups.join(x, v);
    } else if (rule->joins_operands) {
      const std::vector<char> read = read_operands(graph, node);
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (const ValueId v = node.inputs[i];
            v != no_value && read[i] && real(graph[v]) && !graph[v].is_constant() && alike(v, node.outputs[0]))
          groups.join(v, node.outputs[0]);
    }
  }
  hide_unread(graph, movers, read_by, is_output, plan.hidden);
  plan.group.resize(graph.values.size());
  for (ValueId v = 0; v < graph.values.size(); ++v) plan.group[v] = groups.find(v);
}

// int16 inside composites, except where an accumulating call reads it (its fast form takes int8; with one product per
// result there is little to gain).
void plan_widths(const Expanded& program, const QuantiseOptions& options, const UnlikeRanges& unlike_ranges,
                 QuantisationPlan& plan) {
  const Graph& graph = program.graph;
  const std::size_t n = graph.values.size();
  const bool all_wide = options.scheme == Scheme::int16x8;
  plan.wide.assign(n, 1);
  plan.may_widen.assign(n, all_wide || options.wide_inside);
  if (all_wide) return;
  std::vector<char> narrow_group(n, 0), wide_group(n, 0);
  for (ValueId v = 0; v < n; ++v)
    if (!program.inner[v] || !options.wide_inside) narrow_group[plan.group[v]] = 1;
  for (const Node& node : graph.nodes) {
    if (!find_aten(node.op).rule->accumulates || one_product_each(graph, node)) continue;
    for (ValueId v : node.inputs) {
      if (v == no_value) continue;
      narrow_group[plan.group[v]] = 1;
      if (!sums_up_one_sign(graph, node, v, plan.bounds)) plan.may_widen[plan.group[v]] = 0;
    }
  }
  for (ValueId v = 0; v < n; ++v)
    if (is_set(unlike_ranges.wide, v)) wide_group[plan.group[v]] = 1;
  for (ValueId v = 0; v < n; ++v) plan.wide[v] = !narrow_group[plan.group[v]] || wide_group[plan.group[v]];
}

// Values take the width of what computes them, unless somebody decides: of a call's results the one who decides about
// the call. Views follow.
std::vector<Form> fixed_widths(const Expanded& program, const Decisions& decisions) {
  const Graph& graph = program.graph;
  std::vector<Form> fixed = decisions.of_value;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const Form own = decisions.of_node[n];
    if (own == Form::floating || !computes_quantised(graph, node)) continue;
    const bool follows = find_aten(node.op).rule->passes_values && node.inputs[0] != no_value;
    for (ValueId y : node.outputs) {
      if (y == no_value || !real(graph[y]) || fixed[y] != Form::unset) continue;
      // What is inside of a composite has 16 bits because 8 would not do: `int8` means its result.
      fixed[y] = own == Form::int8 && program.inner[y] ? Form::unset : own;
      if (fixed[y] == Form::unset && follows) fixed[y] = fixed[node.inputs[0]];
    }
  }
  return fixed;
}

// Tensors with which nothing computes but calls of one decided form have its width, too. True: there are such.
bool follow_readers(const Expanded& program, const Decisions& decisions, const QuantisationPlan& plan,
                    std::vector<Form>& fixed) {
  const Graph& graph = program.graph;
  struct Readers {
    bool any = false, mixed = false, inner = false;
    Form form = Form::unset;
  };
  std::map<ValueId, Readers> of_group;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (plan.floating(n) || !computes_quantised(graph, node)) continue;
    const ValueId y = node.outputs.empty() ? no_value : node.outputs[0];
    for (ValueId v : node.inputs) {
      if (v == no_value || !plan.quantised[v] || graph[v].is_constant()) continue;
      if (y != no_value && plan.group[y] == plan.group[v]) continue;  // moves its quantised values
      Readers& readers = of_group[plan.group[v]];
      readers.mixed |= readers.any && readers.form != decisions.of_node[n];
      readers.form = decisions.of_node[n];
      readers.any = true;
    }
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (auto it = of_group.find(plan.group[v]); it != of_group.end()) it->second.inner |= program.inner[v] != 0;
  bool any = false;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    auto it = of_group.find(plan.group[v]);
    if (it == of_group.end() || fixed[v] != Form::unset || it->second.mixed || it->second.form == Form::unset ||
        (it->second.inner && it->second.form == Form::int8))
      continue;
    fixed[v] = it->second.form;
    any = true;
  }
  return any;
}

// Operands of other width than what their reader is to compute with. Sums, products and joints rescale theirs anyway,
// views their results; a convolution of 8-bit quantised values gives 16 bits as well as any.
void plan_width_changes(const Graph& graph, const Decisions& decisions, const QuantisationPlan& usual,
                        QuantisationPlan& plan) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (plan.floating(n) || !computes_quantised(graph, node)) continue;
    const FoundOp found = find_aten(node.op);
    const Form own = decisions.of_node[n];
    const auto computed = [&](std::size_t i) {
      return i < node.inputs.size() && node.inputs[i] != no_value && !graph[node.inputs[i]].is_constant() &&
             plan.quantised[node.inputs[i]];
    };
    const auto meet = [&](std::size_t i, bool wide) {
      if (computed(i) && static_cast<bool>(plan.wide[node.inputs[i]]) != wide)
        plan.width_changes.push_back({n, i, wide});
    };
    const auto expected = [&](std::size_t i) {
      return own == Form::unset ? usual.wide[node.inputs[i]] != 0 : own == Form::int16x8;
    };
    if (found.rule->accumulates) {
      const bool weighted = found.schema->argument("weight") != nullptr;
      for (std::size_t i : {0, 1}) {
        if (!computed(i)) continue;
        if (i == 1 && weighted)
          meet(i, false);  // weights have 8 bits
        else if (!expected(i) || (!weighted && computed(1 - i)))
          meet(i, expected(i));
      }
    } else if (own == Form::int8 && found.rule->maps_values()) {
      meet(0, false);
    }
  }
}

// The usual plan, with what is decided, and what follows from it.
QuantisationPlan decided(const Expanded& program, const UnlikeRanges& unlike_ranges, const Decisions& decisions,
                         const QuantisationPlan& usual) {
  const Graph& graph = program.graph;
  UnlikeRanges allowed = unlike_ranges;  // integers that somebody asks for stay integers
  for (std::size_t n = 0; n < allowed.floats.size(); ++n)
    if (decisions.of_node[n] != Form::unset) allowed.floats[n] = 0;
  QuantisationPlan plan;
  plan.bounds = usual.bounds;
  plan.forms = decisions.of_node;
  std::vector<Form> fixed = fixed_widths(program, decisions);
  do plan_groups(graph, allowed, fixed, plan);
  while (follow_readers(program, decisions, plan, fixed));
  plan.wide.resize(graph.values.size());
  plan.may_widen.assign(graph.values.size(), 1);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    plan.wide[v] = fixed[v] == Form::unset ? usual.wide[v] : fixed[v] == Form::int16x8;
    if (fixed[v] != Form::unset || !usual.may_widen[usual.group[v]]) plan.may_widen[plan.group[v]] = 0;
  }
  plan_width_changes(graph, decisions, usual, plan);
  plan.widths = std::move(fixed);
  return plan;
}

void plan_weights(const Expanded& program, const QuantiseOptions& options, QuantisationPlan& plan) {
  const Graph& graph = program.graph;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    FoundOp found = find_aten(node.op);
    if (!found.rule->accumulates || node.inputs.size() < 2 || plan.floating(n)) continue;
    for (const std::size_t operand : {1, 0}) {
      const ValueId w = node.inputs[operand];
      if (w == no_value || !graph[w].is_constant() || !real(graph[w])) continue;
      const bool weight = operand == 1 && found.schema->argument("weight");
      const bool made = w < program.inner.size() && program.inner[w];  // a centring, say, needs all its bits
      // Of a matrix that multiplies rows each column gives a channel of the result: bands of a filter bank, say.
      // With 16 bits it has one scale, as what it is multiplied with.
      const ValueId x = node.inputs[1 - operand];
      const bool columns =
          operand == 1 && !weight && !made && graph[w].type.rank() == 2 && x != no_value && !plan.wide[x];
      const int axis = !options.per_channel ? -1 : weight ? weight_axis(*found.schema, node.attrs) : columns ? 1 : -1;
      plan.weights.push_back({n, operand, axis, !weight, weight && options.four_bits && !made});
    }
  }
}

}  // namespace

bool clamps(const Graph& graph, const Node& node) {
  if (!find_aten(node.op).rule->passes_values) return false;
  auto trial = try_in_shape(graph, node, Shape{4});
  return trial.ok() && trial->graph.nodes.size() == 1 && trial->graph.nodes[0].op == tosa::op::clamp;
}

bool computes_quantised(const Graph& graph, const Node& node) {
  const FoundOp found = find_aten(node.op);
  return found.rule->has_integer_form && !(found.op && found.op->stays_float && found.op->stays_float(graph, node)) &&
         std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId v) { return v != no_value && real(graph[v]); });
}

Status expand_calls(Graph& graph, std::vector<char>& inner, KnownBounds& bounds, const QuantiseOptions& options,
                    const Rewrites& rewrite) {
  TOSAIC_TRY(const StaysWhole whole, stays_whole(options));
  rewrite("squares_of_roots", graph, squares_of_roots);
  rewrite("logarithms_of_squares", graph, logarithms_of_squares, inner, options);
  rewrite("roots_of_squares", graph, roots_of_squares, inner, options);
  TOSAIC_CHECK(rewrite("expand_composites", graph, expand_composites, inner, bounds, whole));
  rewrite("whole_numbers", graph, whole_numbers, inner);
  return {};
}

Result<Expanded> expanded(Graph graph, const QuantiseOptions& options) {
  Expanded program{std::move(graph), {}};
  TOSAIC_CHECK(expand_calls(program.graph, program.inner, program.bounds, options));
  average_with_ranges(program.graph, program.inner, options);
  weights_in_two(program.graph, program.inner, options);
  hold_sums_of_shares(program.graph, program.inner, program.certain, options);
  linear_forms(program.graph, program.inner, options);
  return program;
}

QuantisationPlan plan_quantisation(const Expanded& program, const QuantiseOptions& options,
                                   const UnlikeRanges& unlike_ranges, const Decisions& decisions) {
  QuantisationPlan plan;
  plan.bounds = known_bounds(program);
  plan_groups(program.graph, unlike_ranges, {}, plan);
  plan_widths(program, options, unlike_ranges, plan);
  if (decisions.any()) plan = decided(program, unlike_ranges, decisions, plan);
  plan_weights(program, options, plan);
  for (PlannedWeight& weight : plan.weights)
    if (auto it = decisions.weights.find({program.graph.nodes[weight.node].outputs[0], weight.operand});
        it != decisions.weights.end())
      std::tie(weight.axis, weight.four_bits) = std::tie(it->second.axis, it->second.four_bits);
  return plan;
}

void give_types(Graph& graph, const QuantisationPlan& plan, std::span<const Range> ranges,
                const std::vector<char>& exact) {
  const std::vector<double> known = largest_known(plan);
  const std::vector<char> whole = groups_of_whole_numbers(graph, plan);
  for (ValueId v = 0; v < ranges.size(); ++v) {
    if (!plan.quantised[v] || graph[v].is_constant()) continue;
    TensorType& type = graph[v].type;
    type.dtype = plan.wide[v] ? DType::i16 : DType::i8;
    double largest = std::max(-ranges[v].lowest, ranges[v].highest);
    if (!exact[plan.group[v]])  // no room for what cannot be
      largest = std::min(largest * int16_headroom, std::max(largest, held_exactly(known[plan.group[v]])));
    if (whole[plan.group[v]] && plan.wide[v])
      type.scales = symmetric_scales(with_whole_steps({0, largest}, 32767).highest, DType::i16);
    else if (whole[plan.group[v]])
      type.scales = affine_scales(with_whole_steps(ranges[v], 255), DType::i8);
    else
      type.scales = plan.wide[v] ? symmetric_scales(largest, DType::i16) : affine_scales(ranges[v], DType::i8);
  }
}

void give_weights(Graph& graph, const QuantisationPlan& plan, const QuantiseWeight& quantise_one) {
  std::map<WeightKey, ValueId> made;
  for (const PlannedWeight& weight : plan.weights) {
    Node& node = graph.nodes[weight.node];
    const ValueId x = node.inputs[1 - weight.operand];
    if (node.outputs.empty() || node.outputs[0] == no_value || !plan.quantised[node.outputs[0]])
      continue;  // stays float
    if (x == no_value || !plan.quantised[x]) continue;
    ValueId& w = node.inputs[weight.operand];
    const DType dtype = weight.matrix ? graph[x].type.dtype : weight.four_bits ? DType::i4 : DType::i8;
    auto [it, fresh] = made.try_emplace({w, weight.axis, dtype}, no_value);
    if (fresh) {
      const Tensor made_weight = quantise_one(w, {graph[w].type, graph[w].constant}, weight.axis, dtype);
      it->second =
          graph.add_value(graph[w].name + ".codes" + (weight.axis > 0 ? "1" : ""), made_weight.type, made_weight.data);
    }
    w = it->second;
  }
}

}  // namespace tosaic
