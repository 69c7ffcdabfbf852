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
#include "quantise/compared_scalars.h"
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

class OfSquares {
 public:
  OfSquares(Graph& graph, const QuantiseOptions& options)
      : graph_(graph), options_(options), before_(graph.nodes), made_by_(producers(graph)), out_(graph), b_(graph) {}

  void run() {
    for (Node& node : out_.nodes())
      if (!said_anew(node)) out_.keep(std::move(node));
    drop_dead_nodes(graph_);
  }

 private:
  bool said_anew(const Node& node) {
    const double base = node.op == aten::op::log     ? std::numbers::e
                        : node.op == aten::op::log2  ? 2
                        : node.op == aten::op::log10 ? 10
                                                     : 0;
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
    if (v == no_value || made_by_[v] < 0 || graph_[v].type.dtype != DType::f32 || known_.size() > most_asked) return {};
    const auto [known, fresh] = known_.try_emplace({v, floor});
    if (fresh) {
      const bool before = std::exchange(squares_, false);
      const Node& maker = before_[static_cast<std::size_t>(made_by_[v])];
      const Found found = made_of(maker, floor);
      if (found) loc_ = joined(loc_, maker.loc);
      known_[{v, floor}] = {found, squares_};
      squares_ |= before;
      return found;
    }
    squares_ |= known->second.second;
    return known->second.first;
  }

  // Of a size |x|.
  Val log_of_size(ValueId x, double floor) {
    if (const Found of_size = log_of(x, floor)) return *of_size;
    return calls::log(calls::at_least(calls::abs(b_.value(x)), std::max(floor, least)));
  }

  Found made_of(const Node& node, double floor) {
    namespace op = aten::op;
    const Operator what = node.op;
    const ValueId x = node.inputs.empty() ? no_value : node.inputs[0];
    if (x == no_value || graph_[x].is_constant()) return {};
    if (what == op::abs) return log_of_size(x, floor);
    if (what == op::sqrt) return times(log_of(x, floor * floor), 0.5);
    if (what == op::square) return of_power(x, 2, floor);
    if (what == op::pow_Tensor_Scalar) return of_power(x, number(node, "exponent").value_or(0), floor);
    if (what == op::clamp || what == op::clamp_min) return no_less(node, floor);
    if (what == op::mul_Tensor && node.inputs.size() == 2 && same(x, node.inputs[1])) return of_power(x, 2, floor);
    if (what == op::mul_Tensor || what == op::mul_Scalar) return of_multiple(x, factor(node), floor);
    if (what == op::div_Tensor || what == op::div_Scalar) return of_multiple(x, 1 / factor(node), floor);
    if (what == op::add_Tensor || what == op::add_Scalar) return of_sum(node, floor);
    if (what == op::sum_dim_IntList || what == op::mean_dim) return of_elements(node, floor);
    return {};
  }

  // The same view of one value, perhaps: x[0] * x[0].
  bool same(ValueId a, ValueId b) const {
    while (a != b) {
      if (a == no_value || b == no_value || made_by_[a] < 0 || made_by_[b] < 0) return false;
      const Node &one = before_[static_cast<std::size_t>(made_by_[a])],
                 &other = before_[static_cast<std::size_t>(made_by_[b])];
      if (one.op != other.op || one.attrs != other.attrs || one.inputs.size() != 1 || other.inputs.size() != 1 ||
          one.outputs.size() != 1 || other.outputs.size() != 1)
        return false;
      a = one.inputs[0];
      b = other.inputs[0];
    }
    return true;
  }

  Found of_power(ValueId x, double exponent, double floor) {
    if (!(exponent > 0)) return {};
    const double of_base = std::pow(floor, 1 / exponent);
    const bool even = std::fmod(exponent, 2) == 0;
    const Found log = even ? log_of_size(x, of_base) : log_of(x, of_base);
    squares_ |= even;
    return times(log, exponent);
  }

  Found of_multiple(ValueId x, double factor, double floor) {
    if (!(factor > 0) || std::isinf(factor)) return {};
    const Found log = log_of(x, floor / factor);
    return log ? calls::add(*log, std::log(factor)) : log;
  }

  Found no_less(const Node& node, double floor) {
    const auto lowest = number(node, "min");
    if (!lowest || !(*lowest > 0) || number(node, "max")) return {};
    const Found log = log_of(node.inputs[0], std::max(floor, *lowest));
    return log ? calls::at_least(*log, std::log(*lowest)) : log;
  }

  Found of_sum(const Node& node, double floor) {
    if (number(node, "alpha").value_or(1) != 1) return {};
    const auto constant = scalar_among(node);
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

  Found of_elements(const Node& node, double floor) {
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

  static std::optional<double> number(const Node& node, const char* name) {
    const Attr* attr = node.attrs.find(name);
    if (attr && std::holds_alternative<double>(*attr)) return std::get<double>(*attr);
    if (attr && std::holds_alternative<std::int64_t>(*attr)) return static_cast<double>(std::get<std::int64_t>(*attr));
    return {};
  }
  // The second operand of a sum or a product, a number or a constant of one element.
  std::optional<double> scalar_among(const Node& node) const {
    if (const auto scalar = scalar_of(node)) return scalar;
    if (node.inputs.size() < 2 || node.inputs[1] == no_value) return {};
    const Value& v = graph_[node.inputs[1]];
    if (!v.is_constant() || v.type.shape.elements() != 1) return {};
    return element_as_double(v.type.dtype, v.constant.data(), 0);
  }
  double factor(const Node& node) const { return scalar_among(node).value_or(0); }

  Graph& graph_;
  const QuantiseOptions& options_;
  const std::vector<Node> before_;
  const std::vector<std::int32_t> made_by_;
  Rewriter out_;
  Composer b_;
  std::map<std::pair<ValueId, double>, std::pair<Found, bool>> known_;  // and whether there are squares among it
  bool squares_ = false;
  LocRef loc_;  // of all that the new calls stand for
};

}  // namespace

void logarithms_of_squares(Graph& graph, const QuantiseOptions& options) {
  // Of 8 bits, what is so much quieter has none either.
  if (options.scheme == Scheme::int16x8) OfSquares(graph, options).run();
}

}  // namespace tosaic
