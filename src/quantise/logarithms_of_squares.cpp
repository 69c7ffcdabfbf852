// SPDX-License-Identifier: Apache-2.0
// Logarithms of energies, log(x * x + eps): the energy of a signal that is 40 dB quieter than the loudest has no bit
// left of 16. The logarithm of x has: what is computed between the squares and the logarithm is computed on logarithms.
//   log x^2 = 2 log |x|          log(k e) = log e + log k     log max(e, c) = max(log e, log c)
//   log(a + b) = logaddexp(log a, log b)                      log(e + c) = softplus(log e - log c) + log c
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "ir/aten_operators.h"
#include "ir/provenance.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "ops/rules/quantisation_rule.h"
#include "quantise/powers.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

using Found = std::optional<Val>;

// What is so many times smaller than the sum that it is part of does not show.
constexpr double unseen = 0x1p-14;
constexpr double least = 1e-30;  // log 0 is no number
// Sums of unlike multiples of one value, again and again, would ask for it with ever more floors.
constexpr std::size_t most_asked = 4096;

// Of a logarithm; 0: it is none.
double base_of(const Node& node) {
  if (node.op == aten::op::log) return std::numbers::e;
  if (node.op == aten::op::log2) return 2;
  return node.op == aten::op::log10 ? 10 : 0;
}

class OfSquares {
 public:
  OfSquares(Graph& graph, const QuantiseOptions& options)
      : graph_(graph), options_(options), calls_(graph), out_(graph), b_(graph) {}

  void run() {
    for (Node& node : out_.nodes())
      if (!said_anew(node)) out_.keep(std::move(node));
    drop_dead_nodes(graph_);
  }

 private:
  bool said_anew(const Node& node) {
    const double base = base_of(node);
    if (base == 0 || node.inputs[0] == no_value || node.outputs[0] == no_value) return false;
    b_.set_loc(node.loc);
    squares_ = false;
    loc_ = node.loc;
    const auto made = unless_refused([&]() -> Result<Found> { return log_of(node.inputs[0], 0); });
    if (!made.ok() || !*made || !squares_) return false;
    out_.add(aten::op::mul_Scalar, {(*made)->id()}, {{"other", 1 / std::log(base)}}, node.outputs[0], loc_);
    return true;
  }

  // The logarithm of v, which is no less than 0; where v is less than `floor`, of any number up to that. Nothing: v is
  // not known to be that.
  Found log_of(ValueId v, double floor) {
    const Node* maker = calls_.maker(v);
    if (!maker || graph_[v].type.dtype != DType::f32 || known_.size() > most_asked) return {};
    const auto [known, fresh] = known_.try_emplace({v, floor});
    if (fresh) {
      const bool before = std::exchange(squares_, false);
      const Found found = made_of(*maker, floor);
      if (found) loc_ = joined(loc_, maker->loc);
      known_[{v, floor}] = {found, squares_};
      squares_ |= before;
      return found;
    }
    squares_ |= known->second.second;
    return known->second.first;
  }

  // Of a size |x|.
  Found log_of_size(ValueId x, double floor) {
    if (const Found of_size = log_of(x, floor)) return of_size;
    if (!has_16_bits(x)) return {};
    return calls::log(calls::at_least(calls::abs(b_.value(x)), std::max(floor, least)));
  }

  Found made_of(const Node& node, double floor) {
    namespace op = aten::op;
    const Operator what = node.op;
    if (node.inputs.empty() || node.inputs[0] == no_value) return {};
    const bool constant_first = graph_[node.inputs[0]].is_constant();
    if (constant_first)
      return what == op::maximum ? no_less(node.inputs[1], only_number(graph_, node.inputs[0]), floor) : Found();
    const ValueId x = node.inputs[0];
    if (what == op::abs) return log_of_size(x, floor);
    if (const auto exponent = exponent_of(graph_, calls_, node)) return of_power(x, *exponent, floor);
    if (const auto lowest = least_of(node)) return no_less(x, lowest, floor);
    if (what == op::maximum) return no_less(x, only_number(graph_, node.inputs[1]), floor);
    if (what == op::mul_Tensor || what == op::mul_Scalar) return of_multiple(x, factor(node), floor);
    if (what == op::div_Tensor || what == op::div_Scalar) return of_multiple(x, 1 / factor(node), floor);
    if (what == op::add_Tensor || what == op::add_Scalar) return of_sum(node, floor);
    if (what == op::sum_dim_IntList || what == op::mean_dim) return of_elements(node, floor);
    return {};
  }

  Found of_power(ValueId x, double exponent, double floor) {
    if (!(exponent > 0)) return {};
    const double of_base = std::pow(floor, 1 / exponent);
    const bool even = std::fmod(exponent, 2) == 0;
    const Found log = even ? log_of_size(x, of_base) : log_of(x, of_base);
    squares_ |= even && log;
    return times(log, exponent);
  }

  Found of_multiple(ValueId x, double factor, double floor) {
    if (!(factor > 0) || std::isinf(factor)) return {};
    const Found log = log_of(x, floor / factor);
    return log ? calls::add(*log, std::log(factor)) : log;
  }

  Found no_less(ValueId x, std::optional<double> lowest, double floor) {
    if (!lowest || !(*lowest > 0)) return {};
    const Found log = log_of(x, std::max(floor, *lowest));
    return log ? calls::at_least(*log, std::log(*lowest)) : log;
  }

  Found of_sum(const Node& node, double floor) {
    if (number_of(node, "alpha").value_or(1) != 1) return {};
    const auto constant = scalar_among(graph_, node);
    if (!constant && node.inputs.size() == 2) {
      const double of_each = floor * unseen;
      const Found a = log_of(node.inputs[0], of_each), b = a ? log_of(node.inputs[1], of_each) : a;
      return b ? b_.aten(aten::op::logaddexp, {*a, *b}) : b;
    }
    if (!constant || !(*constant > 0)) return {};
    const Found log = log_of(node.inputs[0], std::max(floor, *constant * unseen));
    if (!log) return log;
    const double at = std::log(*constant);
    return calls::add(calls::unary(aten::op::softplus, calls::add(*log, -at)), at);
  }

  // Has it, or may it have: in programs of int8 only sums of products do, and x * x of 8 bits is whole in 16.
  bool has_16_bits(ValueId x) const {
    if (options_.scheme == Scheme::int16x8) return true;
    for (const Node* maker = calls_.maker(x); maker; maker = calls_.maker(maker->inputs[0])) {
      const Rule rule = find_aten(maker->op).rule;
      if (rule->accumulates || !rule->passes_values || maker->inputs.empty()) return rule->accumulates;
    }
    return false;
  }

  // A logarithm of a sum of exponentials: as sums of squares in programs of int8 are whole in 32 bits, not there.
  Found of_elements(const Node& node, double floor) {
    if (options_.scheme != Scheme::int16x8) return {};
    const auto* dims = std::get_if<std::vector<std::int64_t>>(node.attrs.find("dim"));
    if (!dims || dims->empty()) return {};
    const int rank = graph_[node.inputs[0]].type.rank();
    const auto varies = [&](std::int64_t d) {
      return !size_stays(options_, graph_, node.inputs[0], static_cast<int>(d < 0 ? d + rank : d));
    };
    if (std::ranges::any_of(*dims, varies)) return {};
    const double count = static_cast<double>(graph_[node.inputs[0]].type.shape.elements()) /
                         static_cast<double>(graph_[node.outputs[0]].type.shape.elements());
    const Found log = log_of(node.inputs[0], floor * unseen / count);
    if (!log) return log;
    const Val all =
        b_.aten(aten::op::logsumexp, {*log}, {{"dim", *dims}, {"keepdim", node.attrs.get_or("keepdim", false)}});
    return node.op == aten::op::mean_dim ? calls::add(all, -std::log(count)) : all;
  }

  static Found times(const Found& log, double factor) { return log ? Found(calls::mul(*log, factor)) : log; }

  double factor(const Node& node) const { return scalar_among(graph_, node).value_or(0); }

  Graph& graph_;
  const QuantiseOptions& options_;
  const Calls calls_;
  Rewriter out_;
  Composer b_;
  std::map<std::pair<ValueId, double>, std::pair<Found, bool>> known_;  // and whether there are squares among it
  bool squares_ = false;
  LocRef loc_;  // of all that the new calls stand for
};

}  // namespace

void logarithms_of_squares(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options) {
  inner.resize(graph.values.size(), 0);
  const bool has_logarithms = std::ranges::any_of(graph.nodes, [](const Node& node) { return base_of(node) != 0; });
  if (has_logarithms && (options.scheme == Scheme::int16x8 || options.wide_inside)) OfSquares(graph, options).run();
  inner.resize(graph.values.size(), 1);
}

}  // namespace tosaic
