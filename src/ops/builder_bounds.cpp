// SPDX-License-Identifier: Apache-2.0
#include "ops/builder_bounds.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/bounds.h"
#include "ops/definitions/convolution.h"

namespace tosaic {
namespace {

using tosa::Bounds;

bool integers(DType type) { return is_integer(type) || type == DType::boolean; }

class Analysis {
 public:
  explicit Analysis(const Graph& graph) : graph_(graph) {}

  Bounds of(ValueId v) {
    if (auto it = known_.find(v); it != known_.end()) return it->second;
    const Value& value = graph_[v];
    Bounds i = value.is_constant() ? content(value) : tosa::bounds_of(value.type.dtype);
    if (value.type.quantised() && !value.is_constant() && storage_size(value.type.dtype) <= 2) {
      const auto limits = quantised_range(value.type);
      i = {static_cast<double>(limits.lowest), static_cast<double>(limits.highest)};
    }
    return known_[v] = i;
  }

  bool knows(ValueId v) const { return known_.count(v) != 0; }
  void set(ValueId v, const Bounds& i) { known_[v] = i; }

  // The node's result, and how many times more than fits it may become; 1: it fits.
  double visit(const Node& node) {
    const ValueId y = node.outputs[0];
    if (!integers(graph_[y].type.dtype)) return 1;
    const Bounds fits = tosa::bounds_of(graph_[y].type.dtype);
    double excess = 1;
    Bounds i = result(node, excess);
    excess = std::max({excess, i.highest / fits.highest, fits.lowest < 0 ? i.lowest / fits.lowest : 1.0});
    known_[y] = {std::max(i.lowest, fits.lowest), std::min(i.highest, fits.highest)};
    return excess;
  }

 private:
  static Bounds content(const Value& value) {
    return integers(value.type.dtype) && value.type.shape.elements() > 0 ? tosa::bounds_of(value) : Bounds{0, 0};
  }

  Bounds centred(const Node& node, std::size_t operand, std::size_t zero) {
    const Bounds x = of(node.inputs[operand]), z = of(node.inputs[zero]);
    return {x.lowest - z.highest, x.highest - z.lowest};
  }

  tosa::BoundsOf operands_of(const Node& node) {
    return [&](std::size_t i) {
      const ValueId v = node.inputs[i];
      return v == no_value || !integers(graph_[v].type.dtype) ? Bounds{} : of(v);
    };
  }

  // What the operator's row says, within the dtype where it says nothing.
  Bounds result(const Node& node, double& excess) {
    if (node.op == tosa::op::rescale) return rescaled(node, excess);
    const Bounds all = tosa::bounds_of(graph_[node.outputs[0]].type.dtype);
    const Bounds found = tosa::bounds_of(tosa::View(graph_, node), operands_of(node));
    return {std::isfinite(found.lowest) ? found.lowest : all.lowest,
            std::isfinite(found.highest) ? found.highest : all.highest};
  }

  // Of a convolution's sums, by channel; empty: they are none. The bias of one channel next to the factor of another
  // says nothing.
  std::vector<double> channel_sums(ValueId v, std::size_t channels) {
    const auto maker = std::ranges::find_if(
        graph_.nodes, [&](const Node& node) { return !node.outputs.empty() && node.outputs[0] == v; });
    if (maker == graph_.nodes.end() || maker->inputs.size() != 5 || !tosa::find(maker->op)->accumulates) return {};
    std::vector<double> sums = tosa::largest_sums(tosa::View(graph_, *maker), operands_of(*maker));
    if (sums.size() != channels) return {};
    const Value& bias = graph_[maker->inputs[2]];
    const bool own = bias.is_constant() && bias.type.shape.elements() == static_cast<std::int64_t>(channels);
    for (std::size_t c = 0; c < channels; ++c)
      sums[c] += own ? std::fabs(element_as_double(bias.type.dtype, bias.constant.data(), c))
                     : tosa::bounds::magnitude(of(maker->inputs[2]));
    return sums;
  }

  // value * multiplier / 2^shift; |value| has to stay below 2^(shift - 1), or the result within 32 bits.
  Bounds rescaled(const Node& node, double& excess) {
    const Bounds x = centred(node, 0, 3);
    const Value &multipliers = graph_[node.inputs[1]], &shifts = graph_[node.inputs[2]];
    if (!multipliers.is_constant() || !shifts.is_constant()) return tosa::bounds_of(graph_[node.outputs[0]].type.dtype);
    const bool scale32 = node.attrs.get_or("scale32", true);
    const auto channels = static_cast<std::size_t>(multipliers.type.shape.elements());
    Bounds all;
    const auto look = [&](const std::vector<double>& sums) {
      all = {0, 0};
      double worst = 1;
      for (std::size_t k = 0; k < channels; ++k) {
        const double lowest = sums.empty() ? x.lowest : std::max(x.lowest, -sums[k]);
        const double highest = sums.empty() ? x.highest : std::min(x.highest, sums[k]);
        const double m = element_as_double(multipliers.type.dtype, multipliers.constant.data(), k);
        const double shift = element_as_double(shifts.type.dtype, shifts.constant.data(), k);
        const double factor = m * std::exp2(-shift);
        const double bound = scale32 ? std::exp2(shift - 1) : 2147483647.0 / std::max(factor, 1e-30);
        worst = std::max({worst, -lowest / bound, (highest + (scale32 ? 1 : 0)) / bound});
        all = tosa::bounds::hull(all, {lowest * factor, highest * factor});
      }
      return worst;
    };
    double worst = look({});
    if (worst > 1 && channels > 1) worst = look(channel_sums(node.inputs[0], channels));
    excess = std::max(excess, worst);
    const Bounds zero = of(node.inputs[4]);
    all = {std::floor(all.lowest) + zero.lowest, std::ceil(all.highest) + zero.highest};
    const DType to = graph_[node.outputs[0]].type.dtype;
    if (to == DType::i32) return all;
    return {std::max(all.lowest, tosa::bounds_of(to).lowest),
            std::min(all.highest, tosa::bounds_of(to).highest)};  // saturates
  }

  const Graph& graph_;
  std::map<ValueId, Bounds> known_;
};

// Followed back no further than here.
bool narrow(const Value& v) { return v.is_constant() || is_float(v.type.dtype) || storage_size(v.type.dtype) <= 2; }

// Followed back to tensors of 16 bits or fewer.
Bounds bounds_of(const Graph& graph, ValueId v) {
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

double largest_integer(const Graph& graph, ValueId v) { return tosa::bounds::magnitude(bounds_of(graph, v)); }

std::optional<Overflow> possible_overflow(const Graph& graph, std::size_t first_node) {
  std::optional<Overflow> worst;
  Analysis analysis(graph);
  for (std::size_t n = first_node; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.outputs.empty()) continue;
    for (ValueId v : node.inputs)
      if (v != no_value && !narrow(graph[v]) && !analysis.knows(v)) analysis.set(v, bounds_of(graph, v));
    const double factor = analysis.visit(node);
    if (!graph[node.outputs[0]].type.quantised() || !(factor > 1) || (worst && worst->factor >= factor)) continue;
    worst = Overflow{fmt::format("{} may exceed what {} holds by a factor of {:.3g}", node.op,
                                 name_of(graph[node.outputs[0]].type.dtype), factor),
                     factor};
  }
  return worst;
}

}  // namespace tosaic
