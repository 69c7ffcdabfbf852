// SPDX-License-Identifier: Apache-2.0
#include "quantise/saturation.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/computed.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/compared_scalars.h"

namespace tosaic {
namespace {

// Masked: what means something is this much smaller than what was seen.
constexpr double much_smaller = 4;
// A row whose maximum is below minus this may be masked throughout; exp of less than the second is 0 in f32.
constexpr double masked_maximum = 4096, masked_logarithm = 104;
// Errors of quantised values are amplified by factors beyond this: what is multiplied keeps its own range.
constexpr double largest_factor = 16;

// What the first result is made of; others are places of it (max.dim, max_pool2d_with_indices).
std::optional<Graph> made_of(const Graph& graph, const Node& node) {
  auto trial = try_node(graph, undeclared(node));
  if (!trial.ok() || trial->results.empty()) return std::nullopt;
  std::vector<char> first(trial->results.size(), 0);
  first[0] = 1;
  leave_results(*trial, first);
  return std::move(trial->graph);
}

// Do the nodes only move elements, or choose among them?
bool selects(const Graph& tosa) {
  return std::all_of(tosa.nodes.begin(), tosa.nodes.end(), [](const Node& n) {
    const tosa::Op* row = tosa::find(n.op);
    return row && row->chooses();
  });
}

// Does each result stand for the greatest of several elements?
bool takes_maximum(const Graph& graph, const Node& node) {
  if (!find_aten(node.op).rule->passes_values || node.inputs.empty() || node.outputs.empty() ||
      node.inputs[0] == no_value || node.outputs[0] == no_value || !graph[node.inputs[0]].type.shape.is_static() ||
      !graph[node.outputs[0]].type.shape.is_static() ||
      graph[node.outputs[0]].type.shape.elements() >= graph[node.inputs[0]].type.shape.elements())
    return false;
  const auto made = made_of(graph, node);
  return made && selects(*made) && std::any_of(made->nodes.begin(), made->nodes.end(), [](const Node& n) {
           return n.op == tosa::op::reduce_max;
         });
}

// A clamp that only infinities notice, as safe softmax has one around its rows' maxima.
bool replaces_infinities(const Node& node) {
  constexpr double lowest_half = -65504;
  if (node.op != aten::op::clamp || node.attrs.find("max")) return false;
  const Attr* min = node.attrs.find("min");
  const auto* number = min ? std::get_if<double>(min) : nullptr;
  return number && *number <= lowest_half;
}

bool real(const Value& v) { return v.type.dtype == DType::f32 && !v.type.quantised(); }

// How much one unit of each operand changes the result at its own place, where nothing else changes.
std::optional<std::vector<double>> factors(const Graph& graph, const Node& node) {
  auto trial = try_in_shape(graph, node, Shape{2});
  if (!trial.ok()) return std::nullopt;
  const std::size_t n = trial->graph.inputs.size();
  std::vector<std::vector<double>> zero(n, std::vector<double>(2, 0.0));
  auto base = computed_at(*trial, zero);
  if (!base.ok() || base->size() != 2) return std::nullopt;
  std::vector<double> result(node.inputs.size(), 0.0);
  for (std::size_t i = 0, next = 0; i < node.inputs.size(); ++i) {
    if (trial->operands[i] == no_value || trial->graph[trial->operands[i]].is_constant()) continue;
    auto one = zero;
    one[next++][0] = 1;
    auto y = computed_at(*trial, one);
    if (!y.ok() || (*y)[1] != (*base)[1]) return std::nullopt;
    result[i] = (*y)[0] - (*base)[0];
    if (!std::isfinite(result[i])) return std::nullopt;
  }
  return result;
}

// Does every operand spread over the result, and nothing more?
bool elementwise(const Graph& graph, const Node& node) {
  const Shape& y = graph[node.outputs[0]].type.shape;
  for (ValueId v : node.inputs) {
    if (v == no_value) continue;
    const Shape& x = graph[v].type.shape;
    if (x.rank() > y.rank()) return false;
    for (int i = 1; i <= x.rank(); ++i)
      if (x[x.rank() - i] != y[y.rank() - i] && x[x.rank() - i] != 1) return false;
  }
  return true;
}

// x == -infinity, as decomposed attention asks of whole rows: the outermost quantised value stands for it.
bool compares_with_infinity(const Graph& graph, const Node& node) {
  if (!compares(graph, node)) return false;
  if (const Attr* other = node.attrs.find("other"))
    if (const auto* number = std::get_if<double>(other)) return std::isinf(*number);
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return v != no_value && graph[v].is_constant() && graph[v].type.shape.elements() == 1 &&
           std::isinf(element_as_double(graph[v].type.dtype, graph[v].constant.data(), 0));
  });
}

// x - log(sum(exp(x))), with or without a row's maximum in between, or a layout?
bool logarithm_of_shares(const Graph& graph, const Node& node, const std::vector<std::int32_t>& made_by) {
  if (node.op != aten::op::sub_Tensor || node.inputs.size() != 2) return false;
  static constexpr Operator inwards[] = {aten::op::log, aten::op::sum_dim_IntList, aten::op::exp};
  std::size_t next = 0;
  for (ValueId v = node.inputs[1]; v != no_value && made_by[v] >= 0;) {
    const Node& made = graph.nodes[static_cast<std::size_t>(made_by[v])];
    if (made.inputs.empty()) return false;
    v = made.inputs[0];
    if (next == std::size(inwards)) return made.op == aten::op::sub_Tensor && v == node.inputs[0];
    if (made.op == inwards[next])
      ++next;
    else if (made.op != aten::op::add_Tensor && !find_aten(made.op).rule->passes_values)
      return false;
    if (next == std::size(inwards) && v == node.inputs[0]) return true;
  }
  return false;
}

Range wider(const Range& r) { return {r.lowest - std::fabs(r.lowest) / 2, r.highest + std::fabs(r.highest) / 2}; }

}  // namespace

Saturation::Saturation(const Graph& graph)
    : graph_(graph),
      seen_(graph.values.size()),
      cuts_(graph.values.size()),
      meaningful_(graph.values.size()),
      joins_masked_(graph.values.size(), 0),
      is_output_(graph.values.size(), 0),
      read_(graph.values.size(), 0),
      function_(graph.values.size(), 0) {
  for (ValueId v : graph.outputs) is_output_[v] = 1;
  for (const Node& node : graph.nodes)
    if ((takes_maximum(graph, node) || (replaces_infinities(node) && maxima_.contains(node.inputs[0]))) &&
        real(graph[node.outputs[0]]))
      maxima_[node.outputs[0]];
  const auto made_by = producers(graph);
  for (const Node& node : graph.nodes)
    if (logarithm_of_shares(graph, node, made_by) || only_moves_logarithms(node))
      for (ValueId y : node.outputs)
        if (y != no_value && real(graph[y]) && !maxima_.count(y)) logarithms_[y];
}

bool Saturation::only_moves_logarithms(const Node& node) const {
  if (!find_aten(node.op).rule->shares_scale()) return false;
  bool any = false;
  for (ValueId v : node.inputs) {
    if (v == no_value || graph_[v].is_constant() || !real(graph_[v])) continue;
    if (!logarithms_.count(v)) return false;
    any = true;
  }
  return any;
}

void Saturation::see(ValueId v, std::span<const float> x, const Range& range) {
  Seen& s = seen_[v];
  s.range.include(range);
  Magnitudes* counted = nullptr;
  if (auto it = maxima_.find(v); it != maxima_.end()) counted = &it->second;
  if (auto it = logarithms_.find(v); it != logarithms_.end()) counted = &it->second;
  if (!counted && range.all_finite) return;  // nearly every tensor: its elements need no second look
  for (float value : x) {
    s.below |= value == -std::numeric_limits<float>::infinity();
    s.above |= value == std::numeric_limits<float>::infinity();
    s.nan |= std::isnan(value);
    if (!counted || !(value < 0) || !std::isfinite(value)) continue;
    const auto order = (std::bit_cast<std::uint32_t>(value) >> 23) & 255;
    counted->smallest[order] = std::min(counted->smallest[order], -double{value});
    counted->largest[order] = std::max(counted->largest[order], -double{value});
  }
}

bool Saturation::logarithms_saturate(const Node& node, ValueId y) const {
  const auto saturates = [&](ValueId v) { return v != no_value && meaningful_[v] && logarithms_.count(v); };
  return saturates(y) && std::none_of(node.inputs.begin(), node.inputs.end(), saturates);
}

bool Saturation::left_out(ValueId v) const {
  const Seen& s = seen_[v];
  return s.nan || ((s.below || s.above) && !meaningful_[v]);
}

// Where what means something ends: beyond it there may be what is masked, three orders of magnitude (of 2) away and at
// least `far`.
double Saturation::lowest_unmasked(const Magnitudes& m, const Range& seen, double far) {
  double reached = seen.highest > 0 ? 1.0 : 0.0, lowest = 0;
  for (std::size_t order = 0; order < m.smallest.size(); ++order) {
    if (m.largest[order] == 0) continue;
    if (reached > 0 && m.smallest[order] >= far && m.smallest[order] > 8 * std::max(reached, 1.0)) break;
    lowest = -m.largest[order];
    reached = m.largest[order];
  }
  const double span = seen.highest - lowest;
  return lowest - span / 2;
}

double Saturation::lowest_maximum(ValueId v) const {
  return lowest_unmasked(maxima_.at(v), seen_[v].range, masked_maximum);
}

// Of logarithms of shares, also of those that leave the program: masked ones stay below all others, and so low that
// their shares are 0 in as many bits.
double Saturation::lowest_logarithm(ValueId v, int steps) const {
  return std::min(lowest_unmasked(logarithms_.at(v), seen_[v].range, masked_logarithm), -std::log(2.0 * steps));
}

Range Saturation::extent(ValueId v) const {
  if (!graph_[v].is_constant()) return seen_[v].range;
  Range range{infinity, -infinity};
  const auto n = static_cast<std::size_t>(graph_[v].type.shape.elements());
  for (std::size_t i = 0; i < n; ++i) {
    const double x = element_as_double(graph_[v].type.dtype, graph_[v].constant.data(), i);
    if (std::isnan(x)) continue;
    range.lowest = std::min(range.lowest, x);
    range.highest = std::max(range.highest, x);
  }
  return range;
}

// What v's quantised values will hold, with room for what the samples did not show.
Range Saturation::held(ValueId v) const {
  Range range = wider(extent(v));
  if (auto it = maxima_.find(v); it != maxima_.end()) range.lowest = std::max(range.lowest, lowest_maximum(v));
  return range;
}

// y is c0 x0 + c1 x1 + ...: whatever the others are, y lies beyond its cut where x does.
Saturation::Cut Saturation::before_sum(const Node& node, std::size_t operand, const Cut& y) const {
  if (!elementwise(graph_, node)) return {};
  auto c = factors(graph_, node);
  if (!c || (*c)[operand] == 0 || std::fabs((*c)[operand]) > largest_factor) return {};
  double lowest = 0, highest = 0;  // of the others
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i == operand || node.inputs[i] == no_value || (*c)[i] == 0) continue;
    const Range range = held(node.inputs[i]);
    lowest += (*c)[i] > 0 ? (*c)[i] * range.lowest : (*c)[i] * range.highest;
    highest += (*c)[i] > 0 ? (*c)[i] * range.highest : (*c)[i] * range.lowest;
  }
  const double factor = (*c)[operand], below = (y.lowest - highest) / factor, above = (y.highest - lowest) / factor;
  Cut cut = factor > 0 ? Cut{below, above} : Cut{above, below};
  if (std::isnan(cut.lowest)) cut.lowest = -infinity;
  if (std::isnan(cut.highest)) cut.highest = infinity;
  return cut;
}

// y = f(x): from where on f stays within a quarter of a quantised value of what it tends to.
Saturation::Cut Saturation::before_function(const Node& node, const Cut& y, int steps) const {
  const Seen& x = seen_[node.inputs[0]];
  const double far = 64;  // nearer than this nothing is gained
  const bool below = x.below || x.range.lowest < -far, above = x.above || x.range.highest > far;
  if (!below && !above) return {};
  auto trial = try_in_shape(graph_, node, Shape{1});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return {};
  const Seen& seen = seen_[node.outputs[0]];
  const Range range{std::max(seen.range.lowest, y.lowest), std::min(seen.range.highest, y.highest)};
  const double tolerance = (range.highest - range.lowest) / steps / 4;
  if (!(tolerance > 0)) return {};
  auto f = [&](double at) {
    auto value = computed_at(*trial, {{at}});
    return value.ok() && value->size() == 1 ? std::clamp(value->front(), range.lowest, range.highest) : std::nan("");
  };
  // The point nearest to 0 from which on, outwards, f is what it is at the far end; eighths of octaves.
  auto edge = [&](double sign, double end) {
    const double limit = f(sign * end);
    double found = infinity;
    for (int k = static_cast<int>(std::ceil(8 * std::log2(std::min(end, 1e6)))); k > -64; --k) {
      const double at = std::exp2(k / 8.0);
      if (!(std::fabs(f(sign * at) - limit) <= tolerance)) break;
      found = at;
    }
    return sign * found;
  };
  Cut cut;
  if (below) cut.lowest = edge(-1, std::max(-x.range.lowest, far));
  if (above) cut.highest = edge(1, std::max(x.range.highest, far));
  return cut;
}

// The cut of an operand, from what the node makes of it.
Saturation::Cut Saturation::behind(const Node& node, std::size_t operand, const std::vector<int>& steps) const {
  const FoundOp found = find_aten(node.op);
  if (!found.op || node.outputs.empty() || node.outputs[0] == no_value || !real(graph_[node.outputs[0]])) return {};
  const ValueId y = node.outputs[0];
  const Cut& cut = cuts_[y];
  if (found.rule->tabulates) return operand == 0 ? before_function(node, cut, steps[y]) : Cut{};
  if (maxima_.count(y)) return operand == 0 ? Cut{std::max(lowest_maximum(y), cut.lowest), cut.highest} : Cut{};
  if (!cut.any()) return {};
  if (found.rule->is_linear) return before_sum(node, operand, cut);
  if (!found.rule->shares_scale()) return {};
  const auto made = made_of(graph_, node);
  return made && selects(*made) ? cut : Cut{};
}

void Saturation::resolve(const std::vector<int>& steps) {
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    for (ValueId y : node->outputs)
      if (y != no_value) {
        if (is_output_[y] || !function_[y]) cuts_[y] = {};
        if (logarithms_.count(y)) cuts_[y].lowest = std::max(cuts_[y].lowest, lowest_logarithm(y, steps[y]));
      }
    for (std::size_t i = 0; i < node->inputs.size(); ++i) {
      const ValueId v = node->inputs[i];
      if (v == no_value || graph_[v].is_constant() || !real(graph_[v])) continue;
      if (compares_with_infinity(graph_, *node)) continue;
      const Cut cut = behind(*node, i, steps);
      cuts_[v].lowest = read_[v] ? std::min(cuts_[v].lowest, cut.lowest) : cut.lowest;
      cuts_[v].highest = read_[v] ? std::max(cuts_[v].highest, cut.highest) : cut.highest;
      read_[v] = 1;
      if (node->outputs.empty() || !maxima_.count(node->outputs[0])) function_[v] = 1;
    }
  }
  for (ValueId v = 0; v < graph_.values.size(); ++v) {
    Cut cut = (is_output_[v] || !function_[v]) && !logarithms_.count(v) ? Cut{} : cuts_[v];
    if (maxima_.count(v)) cut.lowest = std::max(cut.lowest, lowest_maximum(v));
    if (!cut.any()) continue;
    const Seen& seen = seen_[v];
    Range range{seen.below || seen.range.lowest < cut.lowest ? cut.lowest : seen.range.lowest,
                seen.above || seen.range.highest > cut.highest ? cut.highest : seen.range.highest};
    if (!std::isfinite(range.lowest)) range.lowest = seen.range.lowest;
    if (!std::isfinite(range.highest)) range.highest = seen.range.highest;
    range.include(0);
    const double natural = seen.range.highest - seen.range.lowest, kept = range.highest - range.lowest;
    const bool infinite = (seen.below && cut.lowest > -infinity) || (seen.above && cut.highest < infinity);
    if (infinite || natural > much_smaller * kept) meaningful_[v] = range;
  }
  // What a masked tensor is made of, as far as nobody else reads it.
  for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
    const bool masked = std::any_of(node->outputs.begin(), node->outputs.end(),
                                    [&](ValueId y) { return y != no_value && (meaningful_[y] || joins_masked_[y]); });
    for (ValueId v : node->inputs)
      if (v != no_value && masked && !graph_[v].is_constant() && !is_output_[v] && function_[v] && cuts_[v].any())
        joins_masked_[v] = 1;
  }
  for (ValueId v = 0; v < graph_.values.size(); ++v)
    if (meaningful_[v] && !is_output_[v]) joins_masked_[v] = 1;
}

}  // namespace tosaic
