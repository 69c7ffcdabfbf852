// SPDX-License-Identifier: Apache-2.0
#include "ops/builder_bounds.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

struct Interval {
  double lowest = 0, highest = 0;
  double magnitude() const { return std::max(std::fabs(lowest), std::fabs(highest)); }
  Interval with(const Interval& o) const { return {std::min(lowest, o.lowest), std::max(highest, o.highest)}; }
};

Interval whole(DType type) {
  if (type == DType::boolean) return {0, 1};
  const auto range = range_of(type);
  return {static_cast<double>(range.lowest), static_cast<double>(range.highest)};
}

bool integers(DType type) { return is_integer(type) || type == DType::boolean; }

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph) {}

  Interval of(ValueId v) {
    if (auto it = known_.find(v); it != known_.end()) return it->second;
    const Value& value = graph_[v];
    Interval i = value.is_constant() ? content(value) : whole(value.type.dtype);
    if (value.type.quantised() && !value.is_constant() && storage_size(value.type.dtype) <= 2) {
      const auto codes = codes_of(value.type);
      i = {static_cast<double>(codes.lowest), static_cast<double>(codes.highest)};
    }
    return known_[v] = i;
  }

  bool knows(ValueId v) const { return known_.count(v) != 0; }
  void set(ValueId v, const Interval& i) { known_[v] = i; }

  // The node's result, and how many times more than fits it may become; 1: it fits.
  double visit(const Node& node) {
    const ValueId y = node.outputs[0];
    if (!integers(graph_[y].type.dtype)) return 1;
    const Interval fits = whole(graph_[y].type.dtype);
    double excess = 1;
    Interval i = result(node, excess);
    excess = std::max({excess, i.highest / fits.highest, fits.lowest < 0 ? i.lowest / fits.lowest : 1.0});
    known_[y] = {std::max(i.lowest, fits.lowest), std::min(i.highest, fits.highest)};
    return excess;
  }

 private:
  // Weights are large.
  template <class T>
  static Interval ends_of(std::span<const T> elements) {
    constexpr std::size_t lanes = 32;  // as many as a vector holds
    std::array<T, lanes> lowest, highest;
    lowest.fill(elements[0]);
    highest.fill(elements[0]);
    std::size_t i = 0;
    for (; i + lanes <= elements.size(); i += lanes)
      for (std::size_t k = 0; k < lanes; ++k) {
        lowest[k] = std::min(lowest[k], elements[i + k]);
        highest[k] = std::max(highest[k], elements[i + k]);
      }
    for (; i < elements.size(); ++i) {
      lowest[0] = std::min(lowest[0], elements[i]);
      highest[0] = std::max(highest[0], elements[i]);
    }
    return {static_cast<double>(*std::min_element(lowest.begin(), lowest.end())),
            static_cast<double>(*std::max_element(highest.begin(), highest.end()))};
  }

  Interval content(const Value& value) const {
    const auto n = static_cast<std::size_t>(value.type.shape.elements());
    if (n == 0 || !integers(value.type.dtype)) return {};
    if (value.type.dtype == DType::i8) return ends_of(value.constant.as<std::int8_t>());
    Interval i{element_as_double(value.type.dtype, value.constant.data(), 0), 0};
    i.highest = i.lowest;
    for (std::size_t k = 1; k < n; ++k) {
      const double x = element_as_double(value.type.dtype, value.constant.data(), k);
      i = i.with({x, x});
    }
    return i;
  }

  Interval centred(const Node& node, std::size_t operand, std::size_t zero) {
    const Interval x = of(node.inputs[operand]), z = of(node.inputs[zero]);
    return {x.lowest - z.highest, x.highest - z.lowest};
  }

  // What the operator's row says, within the dtype where it says nothing.
  Interval result(const Node& node, double& excess) {
    if (node.op == tosa::op::rescale) return rescaled(node, excess);
    const Interval all = whole(graph_[node.outputs[0]].type.dtype);
    const tosa::Bounds found = tosa::bounds_of(tosa::View(graph_, node), [&](std::size_t i) {
      const ValueId v = node.inputs[i];
      if (v == no_value || !integers(graph_[v].type.dtype)) return tosa::Bounds{};
      const Interval known = of(v);
      return tosa::Bounds{known.lowest, known.highest};
    });
    return {std::isfinite(found.lowest) ? found.lowest : all.lowest,
            std::isfinite(found.highest) ? found.highest : all.highest};
  }

  // value * multiplier / 2^shift; |value| has to stay below 2^(shift - 1), or the result within 32 bits.
  Interval rescaled(const Node& node, double& excess) {
    const Interval x = centred(node, 0, 3);
    const Value &multipliers = graph_[node.inputs[1]], &shifts = graph_[node.inputs[2]];
    if (!multipliers.is_constant() || !shifts.is_constant()) return whole(graph_[node.outputs[0]].type.dtype);
    const bool scale32 = node.attrs.get_or("scale32", true);
    Interval all{};
    for (std::size_t k = 0; k < static_cast<std::size_t>(multipliers.type.shape.elements()); ++k) {
      const double m = element_as_double(multipliers.type.dtype, multipliers.constant.data(), k);
      const double shift = element_as_double(shifts.type.dtype, shifts.constant.data(), k);
      const double factor = m * std::exp2(-shift);
      const double bound = scale32 ? std::exp2(shift - 1) : 2147483647.0 / std::max(factor, 1e-30);
      excess = std::max({excess, -x.lowest / bound, (x.highest + (scale32 ? 1 : 0)) / bound});
      all = all.with({x.lowest * factor, x.highest * factor});
    }
    const Interval zero = of(node.inputs[4]);
    all = {std::floor(all.lowest) + zero.lowest, std::ceil(all.highest) + zero.highest};
    const DType to = graph_[node.outputs[0]].type.dtype;
    if (to == DType::i32) return all;
    return {std::max(all.lowest, whole(to).lowest), std::min(all.highest, whole(to).highest)};  // saturates
  }

  const Graph& graph_;
  std::map<ValueId, Interval> known_;
};

// Followed back no further than here.
bool narrow(const Value& v) { return v.is_constant() || is_float(v.type.dtype) || storage_size(v.type.dtype) <= 2; }

// Followed back to tensors of 16 bits or fewer.
Interval interval_of(const Graph& graph, ValueId v) {
  std::vector<ValueId> wanted{v};
  std::vector<std::size_t> nodes;
  for (std::size_t n = graph.nodes.size(); n-- > 0 && !wanted.empty();) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty()) continue;
    auto it = std::find(wanted.begin(), wanted.end(), node.outputs[0]);
    if (it == wanted.end()) continue;
    wanted.erase(it);
    nodes.push_back(n);
    for (ValueId x : node.inputs)
      if (x != no_value && !narrow(graph[x]) && std::find(wanted.begin(), wanted.end(), x) == wanted.end())
        wanted.push_back(x);
  }
  Analysis analysis(graph);
  std::for_each(nodes.rbegin(), nodes.rend(), [&](std::size_t n) { analysis.visit(graph.nodes[n]); });
  return analysis.of(v);
}

}  // namespace

double largest_integer(const Graph& graph, ValueId v) { return interval_of(graph, v).magnitude(); }

std::optional<Overflow> possible_overflow(const Graph& graph, std::size_t first_node) {
  std::optional<Overflow> worst;
  Analysis analysis(graph);
  for (std::size_t n = first_node; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty()) continue;
    for (ValueId v : node.inputs)
      if (v != no_value && !narrow(graph[v]) && !analysis.knows(v)) analysis.set(v, interval_of(graph, v));
    const double factor = analysis.visit(node);
    if (!graph[node.outputs[0]].type.quantised() || !(factor > 1) || (worst && worst->factor >= factor)) continue;
    worst = Overflow{fmt::format("{} may exceed what {} holds by a factor of {:.3g}", node.op,
                                 name_of(graph[node.outputs[0]].type.dtype), factor),
                     factor};
  }
  return worst;
}

}  // namespace tosaic
