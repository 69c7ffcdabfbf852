// SPDX-License-Identifier: Apache-2.0
#include "shaders/attention.h"

#include <algorithm>
#include <limits>

#include "ir/tosa_operators.h"
#include "plan/groups.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_nodes = 24;  // between scores and softmax
constexpr double largest_float = std::numeric_limits<float>::max();

class Search {
 public:
  Search(const plan::Uses& uses, const std::function<bool(std::uint32_t)>& can) : uses_(uses), can_(can) {}

  std::optional<Attention> from(std::uint32_t scores) {
    Attention found;
    found.scores = scores;
    const ValueId score = skip_views(uses_, uses_.node(scores).outputs[0]);
    const auto ends = [&](ValueId v, const std::vector<std::uint32_t>& between) {
      std::vector<std::uint32_t> nodes{scores};
      nodes.insert(nodes.end(), between.begin(), between.end());
      const auto last = softmax_of(skip_views(uses_, v), nodes, found);
      if (!last) return false;
      found.values = *last;
      nodes.push_back(*last);
      std::ranges::sort(nodes);
      found.nodes = std::move(nodes);
      found.score = score;
      if (!between.empty()) found.before_softmax = plan::expression_of(uses_.graph, between);
      return true;
    };
    const plan::Fusing fusing{can_, most_nodes, true};
    const bool found_any =
        is_masked(score, found, ends) ||
        plan::longest_epilogue(uses_, fusing, score,
                               [&](const auto& tail) { return ends(uses_.node(tail.back()).outputs[0], tail); }) ||
        ends(score, {});
    if (!found_any) return std::nullopt;
    return found;
  }

 private:
  // select(mask, score, min(score)): behind the exponential zero takes the place of the others.
  using Ends = std::function<bool(ValueId v, const std::vector<std::uint32_t>& between)>;
  bool is_masked(ValueId score, Attention& found, const Ends& ends) {
    const auto& readers = uses_.users[score];
    if (uses_.visible[score] || readers.size() != 2) return false;
    const auto least = std::ranges::find_if(readers, [&](auto n) { return is_of_rows(n, tosa::op::reduce_min); });
    if (least == readers.end() || uses_.node(*least).attrs.get_or<std::string>("nan_mode", "") == "ignore")
      return false;
    const auto choice = only_user(out(*least), tosa::op::select);
    if (!choice || !can_(*choice) || uses_.node(*choice).inputs[1] != score ||
        uses_.node(*choice).inputs[2] != out(*least))
      return false;
    mask_ = uses_.node(*choice).inputs[0];
    if (mask_ != score && ends(out(*choice), {*choice})) {
      found.least = out(*least);
      found.nodes.push_back(*least);
      std::ranges::sort(found.nodes);
      return true;
    }
    mask_.reset();
    return false;
  }

  ValueId out(std::uint32_t n) const { return uses_.node(n).outputs[0]; }
  bool is(std::uint32_t n, Operator op) const { return uses_.node(n).op == op; }
  bool is_of_rows(std::uint32_t n, Operator op) const {
    const tosa::View view(uses_.graph, uses_.node(n));
    return is(n, op) && view.integer("axis") == view.in(0).shape.rank() - 1;
  }
  std::optional<std::uint32_t> only_user(ValueId v, Operator op) const {
    const auto user = uses_.only_user(v);
    return user && is(*user, op) ? user : std::nullopt;
  }

  // The CLAMP that alone reads it and holds it to numbers from such a one on.
  std::optional<std::uint32_t> clamped_below(ValueId v, const std::function<bool(double)>& from) const {
    const auto n = only_user(v, tosa::op::clamp);
    if (!n) return std::nullopt;
    const Attrs& attrs = uses_.node(*n).attrs;
    const bool is_that = from(attrs.get_or<double>("min_val", 0)) &&
                         attrs.get_or<double>("max_val", 0) == std::numeric_limits<double>::infinity() &&
                         attrs.get_or<std::string>("nan_mode", "") != "ignore";
    return is_that ? n : std::nullopt;
  }

  bool is_zero(ValueId v) const {
    const tosaic::Value& number = uses_.graph[v];
    return number.is_constant() && !number.size && number.type.shape.elements() == 1 &&
           element_as_double(number.type.dtype, number.constant.data(), 0) == 0;
  }

  // exp(x - max(x)) * (1 / sum(exp(x - max(x)))), and the product that reads it. Its nodes are added.
  std::optional<std::uint32_t> softmax_of(ValueId x, std::vector<std::uint32_t>& nodes, Attention& found) const {
    const auto& readers = uses_.users[x];
    if (uses_.visible[x] || readers.size() != 2) return std::nullopt;
    const auto most = std::ranges::find_if(readers, [&](auto n) { return is_of_rows(n, tosa::op::reduce_max); });
    if (most == readers.end() || uses_.node(*most).attrs.get_or<std::string>("nan_mode", "") == "ignore")
      return std::nullopt;
    const auto finite = clamped_below(out(*most), [](double least) { return least <= -largest_float; });
    const ValueId subtracted = out(finite.value_or(*most));
    const auto less = only_user(subtracted, tosa::op::sub);
    if (!less || uses_.node(*less).inputs != std::vector{x, subtracted}) return std::nullopt;
    const auto power = only_user(out(*less), tosa::op::exp);
    if (!power) return std::nullopt;
    ValueId e = out(*power);
    if (mask_) {
      const auto choice = only_user(e, tosa::op::select);
      if (!choice || uses_.node(*choice).inputs[0] != *mask_ || uses_.node(*choice).inputs[1] != e ||
          !is_zero(uses_.node(*choice).inputs[2]))
        return std::nullopt;
      nodes.push_back(*choice);
      e = out(*choice);
    }
    const auto& weighed = uses_.users[e];
    if (uses_.visible[e] || weighed.size() != 2) return std::nullopt;
    const auto sum = std::ranges::find_if(weighed, [&](auto n) { return is_of_rows(n, tosa::op::reduce_sum); });
    if (sum == weighed.end()) return std::nullopt;
    // The largest score weighs one.
    const auto whole = clamped_below(out(*sum), [](double least) { return least == 1; });
    if (whole.has_value() != finite.has_value()) return std::nullopt;
    const auto part = only_user(out(whole.value_or(*sum)), tosa::op::reciprocal);
    const auto weight = part ? only_user(out(*part), tosa::op::mul) : std::nullopt;
    if (!weight || std::ranges::find(uses_.node(*weight).inputs, e) == uses_.node(*weight).inputs.end())
      return std::nullopt;
    const ValueId weights = skip_views(uses_, out(*weight));
    const auto values = only_user(weights, tosa::op::matmul);
    if (!values || uses_.node(*values).inputs[0] != weights || uses_.node(*values).inputs[1] == weights)
      return std::nullopt;
    nodes.insert(nodes.end(), {*most, *less, *power, *sum, *part, *weight});
    if (whole) nodes.insert(nodes.end(), {*finite, *whole});
    found.rows_may_be_empty = whole.has_value();
    return values;
  }

  const plan::Uses& uses_;
  const std::function<bool(std::uint32_t)>& can_;
  std::optional<ValueId> mask_;
};

}  // namespace

std::optional<Attention> attention_at(const plan::Uses& uses, const std::function<bool(std::uint32_t node)>& can,
                                      std::uint32_t scores) {
  const Node& node = uses.node(scores);
  if (node.op != tosa::op::matmul || !uses.type(node.outputs[0]).shape.is_static()) return std::nullopt;
  return Search(uses, can).from(scores);
}

}  // namespace tosaic::shaders
