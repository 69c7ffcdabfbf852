// SPDX-License-Identifier: Apache-2.0
#include "quantise/function_in_parts.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/aten_operators.h"
#include "ops/computed.h"
#include "quantise/row_norms.h"

namespace tosaic {
namespace {

// The range up to `highest`, or little more, in whose 16-bit quantised values `lowest` is a knot of the table that
// follows: what the other knots around it hold is beyond the range of the function's part.
double with_knot_at(double lowest, double highest) {
  return lowest * 32767 / (128 * std::floor(256 * lowest / highest));
}

// The range up to `highest`, or more, in whose 16-bit quantised values 1 has one, far enough from its neighbours that a
// quotient of two numbers in quantised values, of which the larger is `highest`, comes to it where they are equal.
double with_exact_one(double highest) { return std::exp2(1 + std::ceil(std::log2(highest))) * 32767 / 32768; }

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
    const auto bend = [&](double a, double b, double c) { return a == c ? 0 : std::fabs((b - a) / (c - a) - x); };
    multiplies_ = std::min(first, last) > 0 &&
                  bend(std::log(first), std::log(middle), std::log(last)) < bend(first, middle, last);
  }
  bool ok() const { return ok_; }
  bool multiplies() const { return multiplies_; }
  double end(std::size_t i) const { return of_.back()[2 * i]; }
  // Behind `calls` of them, in part `i`; with a knot of the table that follows at its lowest value, as the sum has it.
  CertainRange of_part(std::size_t calls, std::size_t i, bool followed) const {
    CertainRange range = over(calls, 2 * i, 2 * i + 2);
    const double lowest = std::min(of_[calls][2 * i], of_[calls][2 * i + 2]);
    if (followed && lowest > range.highest / 256) range.highest = with_knot_at(lowest, range.highest);
    return range;
  }
  // Of them all, in parts `first` to `i`.
  CertainRange between(std::size_t first, std::size_t i) const { return over(of_.size() - 1, 2 * first, 2 * i + 2); }

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
      b_(graph) {}

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

bool InParts::hold(const Way& way, const Ends& ends) {
  const ValueId sum = nodes_[way.reduction].outputs[0], y = nodes_[way.calls.back()].outputs[0];
  const Values values(graph_, nodes_, way, ends.at);
  if (!values.ok() || (ends.usual > 0 && !values.multiplies())) return false;
  const std::size_t parts = ends.at.size() - 1;
  if (parts == 1 && inner_[sum] && way.base.empty()) {
    certain_[sum] = held({0, ends.at.back()});
    for (std::size_t k = 0; k < way.calls.size(); ++k)
      if (const ValueId v = nodes_[way.calls[k]].outputs[0]; inner_[v] || !values.multiplies())
        certain_[v] = held(values.of_part(k + 1, 0, way.calls.size() > k + 1));
    return true;
  }
  // What only repeats elements waits for the last call.
  const auto repeats = [&](std::size_t n) {
    return nodes_[n].op == aten::op::expand || nodes_[n].op == aten::op::expand_as;
  };
  later_.clear();
  const auto moves = [&](std::size_t n) { return repeats(n) || !only_moves(graph_, nodes_[n]); };
  if (const auto first = std::find_if(way.calls.begin(), way.calls.end(), repeats);
      std::all_of(first, way.calls.end(), moves))
    std::copy_if(first, way.calls.end(), std::back_inserter(later_), repeats);
  b_.set_loc(nodes_[way.calls.back()].loc);
  std::optional<Val> beyond;
  if (ends.usual > 0) beyond = beyond_usual(way, values, ends);
  std::optional<Val> all;
  for (std::size_t i = ends.usual; i < parts; ++i) {
    const Val part = function_of_part(way, values, ends, i);
    if (!all) {
      all = part;
      continue;
    }
    all = values.multiplies() ? calls::mul(*all, part) : calls::add(*all, part);
    CertainRange range = values.between(ends.usual, i);
    if (values.multiplies()) range.most = room_;
    if (range.most > 0) certain_[all->id()] = held(range);
  }
  all = repeated(*all, true);
  // The last call made takes the function's place.
  graph_.nodes.back().outputs[0] = y;
  if (auto it = certain_.extract(all->id()); it && (inner_[y] || !values.multiplies())) certain_[y] = it.mapped();
  std::move(graph_.nodes.begin(), graph_.nodes.end(), std::back_inserter(instead_[way.calls.back()]));
  graph_.nodes.clear();
  if (beyond) multiply_again(way, *beyond);
  inner_.resize(graph_.values.size(), 1);
  return true;
}

Val InParts::repeated(Val all, bool certain) {
  for (const std::size_t n : later_) {
    const Val next = b_.aten(nodes_[n].op, with_first(nodes_[n], all), nodes_[n].attrs);
    if (const auto it = certain_.find(all.id()); certain && it != certain_.end()) certain_[next.id()] = it->second;
    all = next;
  }
  return all;
}

// f(min(s, T)) / f(T), where usual sums begin with T.
Val InParts::beyond_usual(const Way& way, const Values& values, const Ends& ends) {
  std::optional<Val> all;
  for (std::size_t i = 0; i < ends.usual; ++i) {
    const Val part = calls::mul(function_of_part(way, values, ends, i), 1 / values.end(i + 1));
    certain_[part.id()] = held({0, with_exact_one(values.end(i) / values.end(i + 1))});
    all = all ? calls::mul(*all, part) : part;
    certain_[all->id()] = held({0, with_exact_one(values.end(0) / values.end(i + 1))});
  }
  return repeated(*all, true);
}

void InParts::multiply_again(const Way& way, Val factor) {
  for (const std::size_t n : way.products) {
    const ValueId y = nodes_[n].outputs[0];
    const ValueId once = graph_.add_value(graph_[y].name, graph_[y].type);
    nodes_[n].outputs[0] = once;
    b_.set_loc(nodes_[n].loc);
    calls::mul(b_.value(once), factor);
    graph_.nodes.back().outputs[0] = y;
    instead_[n].push_back(nodes_[n]);
    std::move(graph_.nodes.begin(), graph_.nodes.end(), std::back_inserter(instead_[n]));
    graph_.nodes.clear();
  }
}

// The operands of a call, the first of which is v instead.
std::vector<std::optional<Val>> InParts::with_first(const Node& node, Val v) {
  auto operands = b_.values(node.inputs);
  operands[0] = v;
  return operands;
}

// The sum made once more, to be read up to `highest` alone: beyond, it saturates.
Val InParts::sum_of_part(const Way& way, double highest) {
  const auto made = [&](const Node& node, ValueId of, std::optional<Val> by) {
    auto operands = b_.values(node.inputs);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (by && node.inputs[i] == of) operands[i] = by;
    return b_.aten(node.op, std::move(operands), node.attrs);
  };
  Val x = made(nodes_[way.reduction], no_value, std::nullopt);
  ValueId was = nodes_[way.reduction].outputs[0];
  for (const Way::Between& between : way.base) {
    const Node& node = nodes_[between.call];
    certain_[x.id()] = held({0, between.factor * std::pow(highest, between.exponent)});
    x = made(node, was, x);
    was = node.outputs[0];
  }
  certain_[x.id()] = held({0, highest});
  return x;
}

Val InParts::function_of_part(const Way& way, const Values& values, const Ends& ends, std::size_t i) {
  const std::vector<double>& at = ends.at;
  const double highest = i == 0 ? at[1] : with_knot_at(at[i], at[i + 1]);
  Val x = sum_of_part(way, highest);
  Attrs bounds;
  if (i > 0) bounds.set("min", at[i]);
  if (i + 2 < at.size()) bounds.set("max", at[i + 1]);
  if (bounds.size() > 0) x = b_.aten(aten::op::clamp, {x}, bounds);
  certain_[x.id()] = held({0, highest});
  for (std::size_t k = 0; k < way.calls.size(); ++k) {
    const Node& node = nodes_[way.calls[k]];
    if (std::count(later_.begin(), later_.end(), way.calls[k])) continue;
    x = b_.aten(node.op, with_first(node, x), node.attrs);
    certain_[x.id()] = held(values.of_part(k + 1, i, way.calls.size() > k + 1));
  }
  if (i <= ends.usual) return x;
  const double first = values.end(i);
  CertainRange range = certain_[x.id()];
  x = values.multiplies() ? calls::mul(x, 1 / first) : calls::add(x, -first);
  range.lowest = values.multiplies() ? range.lowest / first : std::min(range.lowest - first, 0.0);
  range.highest = values.multiplies() ? range.highest / first : std::max(range.highest - first, 0.0);
  certain_[x.id()] = range;
  return x;
}

}  // namespace tosaic
