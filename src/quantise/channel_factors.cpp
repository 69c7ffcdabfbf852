// SPDX-License-Identifier: Apache-2.0
#include "quantise/channel_factors.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "ir/reshaped_dim.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {
namespace {

using Channels = std::optional<ChannelFactors>;
// What a node's result has, which may be none; or `impossible`: its operands cannot have theirs.
using Outcome = std::optional<Channels>;
constexpr std::nullopt_t impossible = std::nullopt;
Outcome only_if(bool possible, Channels channels) { return possible ? Outcome(std::move(channels)) : impossible; }

// One TOSA node, whose operands' factors are known.
class Spread {
 public:
  Spread(const Graph& graph, const Node& node, const FactorsOfValues& of, Factors& factors)
      : graph_(graph), node_(node), of_(of), factors_(factors) {}

  // Of the result. Operands' factors that it cannot have are made 1.
  Channels result() {
    if (std::ranges::none_of(node_.inputs, [&](ValueId v) { return v != no_value && varies(of_[v], factors_); }))
      return {};
    if (Outcome found = of_result()) return *std::move(found);
    for (ValueId v : node_.inputs)
      if (v != no_value) make_one(of_[v], factors_);
    return {};
  }

 private:
  Channels operand(std::size_t i) const {
    const Channels& channels = of_[node_.inputs[i]];
    return varies(channels, factors_) ? channels : Channels();
  }
  const Shape& shape(std::size_t i) const { return graph_[node_.inputs[i]].type.shape; }
  const Shape& result_shape() const { return graph_[node_.outputs[0]].type.shape; }
  std::span<const std::int64_t> integers(std::size_t i) const {
    return graph_[node_.inputs[i]].constant.as<std::int64_t>();
  }
  // The elements of a constant of floats that are all one number.
  std::optional<float> number(std::size_t i) const {
    const Value& v = graph_[node_.inputs[i]];
    if (!v.is_constant() || v.type.dtype != DType::f32) return {};
    const auto x = v.constant.as<float>();
    if (x.empty() || std::ranges::any_of(x, [&](float e) { return e != x[0]; })) return {};
    return x[0];
  }

  Outcome of_result() {
    namespace op = tosa::op;
    const Operator what = node_.op;
    if (what == op::mul) return product();
    if (what == op::add || what == op::sub || what == op::maximum || what == op::minimum) return alike({0, 1});
    if (what == op::select) return operand(0) ? impossible : alike({1, 2});
    if (what == op::concat) return concatenated();
    if (what == op::greater || what == op::greater_equal || what == op::equal)
      return only_if(number(0) == 0.0f || number(1) == 0.0f, Channels());  // a sign
    if (!operand(0)) return impossible;
    ChannelFactors c = *operand(0);
    const auto at = static_cast<std::size_t>(c.dim);
    if (what == op::identity || what == op::abs || what == op::negate) return c;
    if (what == op::clamp && c.power > 0 && bounds_hold_zero()) return c;
    if ((what == op::max_pool2d || what == op::avg_pool2d || what == op::resize) && c.dim == 3) return c;
    if (what == op::reduce_sum || what == op::reduce_max || what == op::reduce_min || what == op::reverse)
      return only_if(node_.attrs.get<std::int64_t>("axis") != c.dim, c);
    if (what == op::tile) return only_if(integers(1)[at] == 1, c);
    if (what == op::transpose) {
      const auto& perms = node_.attrs.get<std::vector<std::int64_t>>("perms");
      c.dim = static_cast<int>(std::ranges::find(perms, c.dim) - perms.begin());
      return c;
    }
    if (what == op::reshape) return reshaped(c);
    if (what == op::slice) {
      const auto first = c.by_index.begin() + integers(1)[at];
      c.by_index = std::vector(first, first + integers(2)[at]);
      return c;
    }
    if (what == op::pad && number(2) == 0.0f) return padded(c, integers(1)[2 * at], integers(1)[2 * at + 1]);
    return raised(c);
  }

  bool bounds_hold_zero() const {
    const auto bound = [&](const char* name) { return std::get<double>(*node_.attrs.find(name)); };
    return bound("min_val") <= 0 && bound("max_val") >= 0;
  }

  // A channel of zeros may have any factor.
  Channels padded(ChannelFactors c, std::int64_t before, std::int64_t behind) {
    std::vector<Factors::Id> by_index;
    for (; before > 0; --before) by_index.push_back(factors_.fresh());
    by_index.insert(by_index.end(), c.by_index.begin(), c.by_index.end());
    for (; behind > 0; --behind) by_index.push_back(factors_.fresh());
    c.by_index = std::move(by_index);
    return c;
  }

  // x to a power.
  Outcome raised(ChannelFactors c) const {
    double exponent = 0;
    if (node_.op == tosa::op::reciprocal) exponent = -1;
    if (node_.op == tosa::op::rsqrt) exponent = -0.5;
    if (node_.op == tosa::op::pow) exponent = number(1).value_or(0);
    const double power = c.power * exponent;
    if (power == 0 || power != std::trunc(power) || std::fabs(power) > 4) return impossible;
    c.power = static_cast<int>(power);
    return c;
  }

  bool tied(const ChannelFactors& a, const ChannelFactors& b) {
    if (a.dim != b.dim || a.by_index.size() != b.by_index.size()) return false;
    for (std::size_t i = 0; i < a.by_index.size(); ++i) factors_.tie(a.by_index[i], b.by_index[i]);
    return true;
  }

  // Both operands have the same factors, or one of them is zero.
  Outcome alike(std::array<std::size_t, 2> operands) {
    const Channels a = operand(operands[0]), b = operand(operands[1]);
    if (a && b) return only_if(a->power == b->power && tied(*a, *b), a);
    const Channels& c = a ? a : b;
    return only_if(c && number(operands[a ? 1 : 0]) == 0.0f && spans_result(*c), c);
  }

  Outcome product() {
    Channels a = operand(0), b = operand(1);
    if (!a) std::swap(a, b);
    if ((b && !tied(*a, *b)) || !spans_result(*a)) return impossible;
    if (b) a->power += b->power;
    return a->power == 0 ? Channels() : a;
  }

  // The result's dim has as many indices: no broadcast repeats them.
  bool spans_result(const ChannelFactors& c) const {
    return c.dim < result_shape().rank() && result_shape().size(c.dim) == static_cast<std::int64_t>(c.by_index.size());
  }

  Outcome concatenated() {
    const auto axis = static_cast<int>(node_.attrs.get<std::int64_t>("axis"));
    std::size_t first = 0;
    while (!operand(first)) ++first;
    ChannelFactors all = *operand(first);
    if (all.dim == axis) all.by_index.clear();
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const Channels part = operand(i);
      if (part && (part->dim != all.dim || part->power != all.power)) return impossible;
      if (all.dim != axis) {
        if (!part || !tied(all, *part)) return impossible;
      } else if (part) {
        all.by_index.insert(all.by_index.end(), part->by_index.begin(), part->by_index.end());
      } else {
        all.by_index.insert(all.by_index.end(), static_cast<std::size_t>(shape(i).size(axis)), Factors::one);
      }
    }
    return all;
  }

  Outcome reshaped(const ChannelFactors& c) const {
    const auto place = reshaped_dim(shape(0), c.dim, result_shape());
    if (!place) return impossible;
    std::vector<Factors::Id> by_index;
    for (std::int64_t i = 0; i < result_shape().size(place->dim); ++i) by_index.push_back(c.by_index[place->index(i)]);
    return ChannelFactors{place->dim, std::move(by_index), c.power};
  }

  const Graph& graph_;
  const Node& node_;
  const FactorsOfValues& of_;
  Factors& factors_;
};

}  // namespace

Factors::Id Factors::fresh() {
  above_.push_back(static_cast<Id>(above_.size()));
  return above_.back();
}

Factors::Id Factors::root(Id id) const {
  while (above_[id] != id) id = above_[id];
  return id;
}

void Factors::tie(Id a, Id b) {
  a = root(a);
  b = root(b);
  above_[std::max(a, b)] = std::min(a, b);
}

bool varies(const std::optional<ChannelFactors>& channels, const Factors& factors) {
  return channels && !std::ranges::all_of(channels->by_index, [&](Factors::Id id) { return factors.is_one(id); });
}

void make_one(const std::optional<ChannelFactors>& channels, Factors& factors) {
  if (!channels) return;
  for (const Factors::Id id : channels->by_index) factors.tie(id, Factors::one);
}

void spread_factors(const Graph& tosa, FactorsOfValues& of, Factors& factors) {
  of.resize(tosa.values.size());
  for (const Node& node : tosa.nodes) {
    auto found = Spread(tosa, node, of, factors).result();
    for (const ValueId y : node.outputs) of[y] = found;
  }
}

}  // namespace tosaic
