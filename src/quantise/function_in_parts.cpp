// SPDX-License-Identifier: Apache-2.0
#include "quantise/function_in_parts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "lower/computed.h"
#include "quantise/row_norms.h"

namespace tosaic {
namespace {

// The range up to `highest`, or little more, in whose 16-bit codes `lowest` is a knot of the table that follows: what
// the other knots around it hold is beyond the range of the function's part.
double with_knot_at(double lowest, double highest) {
  return lowest * 32767 / (128 * std::floor(256 * lowest / highest));
}

}  // namespace

std::optional<std::vector<double>> results_at(const Graph& graph, const Node& node, std::vector<double> at) {
  const auto trial = try_in_shape(graph, node, Shape{static_cast<std::int64_t>(at.size())});
  if (!trial.ok() || trial->graph.inputs.size() != 1) return std::nullopt;
  auto y = computed_at(*trial, {at});
  std::reverse(at.begin(), at.end());
  const auto backwards = computed_at(*trial, {at});
  if (!y.ok() || !backwards.ok() || y->size() != at.size() || !std::equal(y->rbegin(), y->rend(), backwards->begin()))
    return std::nullopt;
  return std::move(*y);
}

// The function at the ends of the parts, and between these.
class InParts::Values {
 public:
  Values(const Graph& graph, const std::vector<Node>& nodes, const Way& way, const std::vector<double>& ends) {
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      at_.push_back(ends[i]);
      at_.push_back(std::sqrt(ends[i] * ends[i + 1]));
    }
    at_.push_back(ends.back());
    of_.push_back(at_);
    for (const std::size_t n : way.calls) {
      auto y = only_moves(graph, nodes[n]) ? std::optional(of_.back()) : results_at(graph, nodes[n], of_.back());
      if (!y || !std::all_of(y->begin(), y->end(), [](double value) { return std::isfinite(value); })) return;
      of_.push_back(std::move(*y));
    }
    const auto& y = of_.back();
    ok_ = std::is_sorted(y.begin(), y.end()) || std::is_sorted(y.rbegin(), y.rend());
    // Which of f and log f is the straighter over log x?
    const double first = y.front(), last = y.back(), middle = y[y.size() / 2];
    const double x = std::log(at_[at_.size() / 2] / at_.front()) / std::log(at_.back() / at_.front());
    const auto bend = [&](double a, double b, double c) {
      return a == c ? 0 : std::fabs((b - a) / (c - a) - x);
    };
    multiplies_ = std::min(first, last) > 0 &&
                  bend(std::log(first), std::log(middle), std::log(last)) < bend(first, middle, last);
  }
  bool ok() const { return ok_; }
  bool multiplies() const { return multiplies_; }
  double end(std::size_t i) const { return of_.back()[2 * i]; }
  // Behind `calls` of them, in part `i` of them all; and in the parts up to that.
  CertainRange of_part(std::size_t calls, std::size_t i) const { return over(calls, 2 * i, 2 * i + 2); }
  CertainRange up_to(std::size_t i) const { return over(of_.size() - 1, 0, 2 * i + 2); }

 private:
  CertainRange over(std::size_t calls, std::size_t first, std::size_t last) const {
    const auto& y = of_[calls];
    const auto [low, high] = std::minmax_element(y.begin() + static_cast<std::ptrdiff_t>(first),
                                                 y.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    return {std::min(*low, 0.0), std::max(*high, 0.0)};
  }
  std::vector<double> at_;
  std::vector<std::vector<double>> of_;
  bool ok_ = false, multiplies_ = false;
};

InParts::InParts(Graph& graph, std::vector<char>& inner, CertainRanges& certain, double room, bool closed)
    : graph_(graph),
      inner_(inner),
      certain_(certain),
      room_(room),
      closed_(closed),
      out_(graph),
      instead_(nodes_.size()),
      b_(graph) {
  b_.keep_aten(true);
}

CertainRange InParts::held(CertainRange range) const {
  range.closed = closed_;
  return range;
}

void InParts::finish() {
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (instead_[n].empty()) out_.keep(std::move(nodes_[n]));
    for (Node& node : instead_[n]) out_.keep(std::move(node));
  }
  drop_dead_nodes(graph_);
}

bool InParts::hold(const Way& way, const std::vector<double>& ends) {
  const ValueId sum = nodes_[way.reduction].outputs[0], y = nodes_[way.calls.back()].outputs[0];
  const Values values(graph_, nodes_, way, ends);
  if (!values.ok()) return false;
  const std::size_t parts = ends.size() - 1;
  if (parts == 1 && inner_[sum]) {
    certain_[sum] = held({0, ends.back()});
    for (std::size_t k = 0; k < way.calls.size(); ++k)
      if (const ValueId v = nodes_[way.calls[k]].outputs[0]; inner_[v] || !values.multiplies())
        certain_[v] = held(values.of_part(k + 1, 0));
    return true;
  }
  // What only repeats elements waits for the last call.
  const auto repeats = [&](std::size_t n) { return nodes_[n].op == "aten.expand.default"; };
  later_.clear();
  const auto moves = [&](std::size_t n) { return repeats(n) || !only_moves(graph_, nodes_[n]); };
  if (const auto first = std::find_if(way.calls.begin(), way.calls.end(), repeats);
      std::all_of(first, way.calls.end(), moves))
    std::copy_if(first, way.calls.end(), std::back_inserter(later_), repeats);
  b_.set_loc(nodes_[way.calls.back()].loc);
  std::optional<Val> all;
  for (std::size_t i = 0; i < parts; ++i) {
    const Val part = function_of_part(way, values, ends, i);
    if (!all) {
      all = part;
      continue;
    }
    all = values.multiplies() ? calls::mul(*all, part) : calls::add(*all, part);
    CertainRange range = values.up_to(i);
    if (values.multiplies()) range.most = room_;
    if (range.most > 0) certain_[all->id()] = held(range);
  }
  for (const std::size_t n : later_) {
    const Val repeated = b_.aten(nodes_[n].op, {*all}, nodes_[n].attrs);
    if (const auto it = certain_.find(all->id()); it != certain_.end()) certain_[repeated.id()] = it->second;
    all = repeated;
  }
  // The last call made takes the function's place.
  graph_.nodes.back().outputs[0] = y;
  if (auto it = certain_.extract(all->id()); it && (inner_[y] || !values.multiplies())) certain_[y] = it.mapped();
  std::move(graph_.nodes.begin(), graph_.nodes.end(), std::back_inserter(instead_[way.calls.back()]));
  graph_.nodes.clear();
  inner_.resize(graph_.values.size(), 1);
  return true;
}

Val InParts::function_of_part(const Way& way, const Values& values, const std::vector<double>& ends, std::size_t i) {
  const Node& reduction = nodes_[way.reduction];
  Val x = b_.aten(reduction.op, {Val(&b_, reduction.inputs[0])}, reduction.attrs);
  Attrs bounds;
  if (i > 0) bounds.set("min", ends[i]);
  if (i + 2 < ends.size()) bounds.set("max", ends[i + 1]);
  if (bounds.size() > 0) x = b_.aten("aten.clamp.default", {x}, bounds);
  certain_[x.id()] = held({0, i == 0 ? ends[1] : with_knot_at(ends[i], ends[i + 1])});
  for (std::size_t k = 0; k < way.calls.size(); ++k) {
    const Node& node = nodes_[way.calls[k]];
    if (std::count(later_.begin(), later_.end(), way.calls[k])) continue;
    std::vector<std::optional<Val>> operands{x};
    for (std::size_t j = 1; j < node.inputs.size(); ++j)
      operands.push_back(node.inputs[j] == no_value ? std::nullopt : std::optional(Val(&b_, node.inputs[j])));
    x = b_.aten(node.op, std::move(operands), node.attrs);
    certain_[x.id()] = held(values.of_part(k + 1, i));
  }
  if (i == 0) return x;
  const double first = values.end(i);
  CertainRange range = certain_[x.id()];
  x = values.multiplies() ? calls::mul(x, 1 / first) : calls::add(x, -first);
  range.lowest = values.multiplies() ? range.lowest / first : std::min(range.lowest - first, 0.0);
  range.highest = values.multiplies() ? range.highest / first : std::max(range.highest - first, 0.0);
  certain_[x.id()] = range;
  return x;
}

}  // namespace tosaic
