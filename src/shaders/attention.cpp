// SPDX-License-Identifier: Apache-2.0
#include "shaders/attention.h"

#include <algorithm>

#include "ir/tosa_operators.h"
#include "plan/groups.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

constexpr std::size_t most_nodes = 24;  // between scores and softmax

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
      const auto last = softmax_of(skip_views(uses_, v), nodes);
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
        plan::longest_epilogue(uses_, fusing, score,
                               [&](const auto& tail) { return ends(uses_.node(tail.back()).outputs[0], tail); }) ||
        ends(score, {});
    if (!found_any) return std::nullopt;
    return found;
  }

 private:
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

  // exp(x - max(x)) * (1 / sum(exp(x - max(x)))), and the product that reads it. Its nodes are added.
  std::optional<std::uint32_t> softmax_of(ValueId x, std::vector<std::uint32_t>& nodes) const {
    const auto& readers = uses_.users[x];
    if (uses_.visible[x] || readers.size() != 2) return std::nullopt;
    const auto most = std::ranges::find_if(readers, [&](auto n) { return is_of_rows(n, tosa::op::reduce_max); });
    if (most == readers.end() || uses_.node(*most).attrs.get_or<std::string>("nan_mode", "") == "ignore")
      return std::nullopt;
    const auto less = only_user(out(*most), tosa::op::sub);
    if (!less || uses_.node(*less).inputs != std::vector{x, out(*most)}) return std::nullopt;
    const auto power = only_user(out(*less), tosa::op::exp);
    if (!power) return std::nullopt;
    const ValueId e = out(*power);
    const auto& weighed = uses_.users[e];
    if (uses_.visible[e] || weighed.size() != 2) return std::nullopt;
    const auto sum = std::ranges::find_if(weighed, [&](auto n) { return is_of_rows(n, tosa::op::reduce_sum); });
    if (sum == weighed.end()) return std::nullopt;
    const auto part = only_user(out(*sum), tosa::op::reciprocal);
    const auto weight = part ? only_user(out(*part), tosa::op::mul) : std::nullopt;
    if (!weight || std::ranges::find(uses_.node(*weight).inputs, e) == uses_.node(*weight).inputs.end())
      return std::nullopt;
    const ValueId weights = skip_views(uses_, out(*weight));
    const auto values = only_user(weights, tosa::op::matmul);
    if (!values || uses_.node(*values).inputs[0] != weights || uses_.node(*values).inputs[1] == weights)
      return std::nullopt;
    nodes.insert(nodes.end(), {*most, *less, *power, *sum, *part, *weight});
    return values;
  }

  const plan::Uses& uses_;
  const std::function<bool(std::uint32_t)>& can_;
};

}  // namespace

std::optional<Attention> attention_at(const plan::Uses& uses, const std::function<bool(std::uint32_t node)>& can,
                                      std::uint32_t scores) {
  const Node& node = uses.node(scores);
  if (node.op != tosa::op::matmul || !uses.type(node.outputs[0]).shape.is_static()) return std::nullopt;
  return Search(uses, can).from(scores);
}

}  // namespace tosaic::shaders
