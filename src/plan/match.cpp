// SPDX-License-Identifier: Apache-2.0
#include "plan/match.h"

#include <algorithm>

#include "ir/tosa_operators.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

bool have_same_attributes(const Node& a, const Node& b) {
  return a.attrs.size() == b.attrs.size() && std::ranges::all_of(a.attrs, [&](const auto& attr) {
           const Attr* other = b.attrs.find(attr.first);
           return other && *other == attr.second;
         });
}
bool commutes(const Node& node) { return node.op == tosa::op::add || node.op == tosa::op::mul; }

class Matching {
 public:
  Matching(const Graph& pattern, const Graph& graph, std::span<const std::int32_t> producer)
      : pattern_(pattern), graph_(graph), producer_(producer), pattern_producer_(producers(pattern)) {
    found_.value.assign(pattern.values.size(), no_value);
  }

  bool is_same(ValueId wanted, ValueId value) {
    ValueId& known = found_.value[wanted];
    if (known != no_value) return known == value;
    const Value &of_pattern = pattern_[wanted], &of_graph = graph_[value];
    const Node* node = maker(pattern_, pattern_producer_, wanted);
    const bool input = !node && !of_pattern.is_constant();
    if (!input && of_pattern.type != of_graph.type) return false;
    if (!node) {
      if (!input && of_pattern.constant != of_graph.constant) return false;
      known = value;
      return true;
    }
    const Node* other = maker(graph_, producer_, value);
    if (!other || !computes_same(*node, *other)) return false;
    found_.value[wanted] = value;
    found_.nodes.insert(static_cast<std::uint32_t>(producer_[value]));
    return true;
  }
  Match found() { return std::move(found_); }

 private:
  bool computes_same(const Node& wanted, const Node& node) {
    if (wanted.op != node.op || wanted.inputs.size() != node.inputs.size() || !have_same_attributes(wanted, node))
      return false;
    const Match before = found_;
    if (reads_same(wanted.inputs, node.inputs)) return true;
    found_ = before;
    if (!commutes(node)) return false;
    std::vector<ValueId> turned = node.inputs;
    std::swap(turned[0], turned[1]);
    return reads_same(wanted.inputs, turned);
  }
  bool reads_same(const std::vector<ValueId>& wanted, const std::vector<ValueId>& values) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (!is_same(wanted[i], values[i])) return false;
    return true;
  }

  const Graph &pattern_, &graph_;
  const std::span<const std::int32_t> producer_;
  const std::vector<std::int32_t> pattern_producer_;
  Match found_;
};

}  // namespace

std::optional<Match> match(const Graph& pattern, const Graph& graph, std::span<const std::int32_t> producer,
                           ValueId value) {
  Matching matching(pattern, graph, producer);
  if (!matching.is_same(pattern.nodes.back().outputs[0], value)) return std::nullopt;
  return matching.found();
}

}  // namespace tosaic::plan
