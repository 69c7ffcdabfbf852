// SPDX-License-Identifier: Apache-2.0
#include "plan/groups.h"

#include <algorithm>
#include <set>

#include "ir/extent.h"
#include "plan/expression.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

bool holds(const std::vector<std::uint32_t>& nodes, std::uint32_t n) {
  return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
}

// The first node behind `value` through which alone others see what is made of it.
std::optional<std::uint32_t> joint(const Uses& uses, const Fusing& fusing, ValueId value) {
  const Dim elements = elements_of(uses.type(value).shape);
  std::vector<ValueId> values{value};
  std::vector<std::uint32_t> nodes;
  while (nodes.size() < fusing.max_nodes) {
    std::optional<std::uint32_t> next;
    bool closed = true;  // but for the last one's result
    for (ValueId v : values) {
      closed = closed && !(v != values.back() && uses.visible[v]);
      for (std::uint32_t u : uses.users[v]) {
        if (holds(nodes, u)) continue;
        closed = closed && v == values.back();
        if (!next || u < *next) next = u;
      }
    }
    if (closed && !nodes.empty()) return nodes.back();
    if (!next || uses.visible[value] || !fusing.can(*next) || uses.node(*next).outputs.size() != 1) return std::nullopt;
    values.push_back(uses.node(*next).outputs[0]);
    if (elements_of(uses.type(values.back()).shape) != elements) return std::nullopt;
    nodes.push_back(*next);
  }
  return std::nullopt;
}

// Do all who read the value come after node `last`, but for those of `group`? These do not read it by a view, which is
// memory.
bool is_read_after(const Uses& uses, ValueId value, std::uint32_t last, const std::vector<std::uint32_t>& group = {}) {
  for (std::uint32_t user : uses.users[value]) {
    if (user > last) return true;  // and so do all that follow
    if (holds(group, user)) continue;
    if (!is_view(uses.node(user)) || !is_read_after(uses, uses.node(user).outputs[0], last)) return false;
  }
  return true;
}

// The members and all elementwise nodes of as many elements that serve only them, ascending.
std::vector<std::uint32_t> elementwise_closure(const Uses& uses, const Fusing& fusing,
                                               std::vector<std::uint32_t> members, std::size_t most, ValueId stop) {
  const auto elements_made = [&](std::uint32_t n) { return elements_of(uses.type(uses.node(n).outputs[0]).shape); };
  const Dim elements = elements_made(members.back());
  return with_producers(uses, std::move(members), most, [&](std::uint32_t n) {
    return uses.node(n).outputs[0] != stop && elements_made(n) == elements && fusing.can(n);
  });
}

}  // namespace

std::vector<std::uint32_t> with_producers(const Uses& uses, std::vector<std::uint32_t> members, std::size_t most,
                                          const std::function<bool(std::uint32_t node)>& takes) {
  std::set<std::uint32_t> candidates;
  const auto look_at = [&](std::uint32_t n) {
    const Node& node = uses.node(n);
    for (std::size_t i = 0; i < walked_operands(*tosa::find(node.op)); ++i)
      if (const std::int32_t producer = uses.producer[node.inputs[i]]; producer >= 0)
        candidates.insert(static_cast<std::uint32_t>(producer));
  };
  std::ranges::for_each(members, look_at);
  // Latest first: when a candidate's turn comes, all its readers have been decided.
  while (!candidates.empty() && members.size() < most) {
    const std::uint32_t n = *candidates.rbegin();
    candidates.erase(n);
    if (holds(members, n) || uses.node(n).outputs.size() != 1) continue;
    const ValueId value = uses.node(n).outputs[0];
    const auto is_member = [&](std::uint32_t user) { return holds(members, user); };
    if (uses.visible[value] || !std::ranges::all_of(uses.users[value], is_member) || !takes(n)) continue;
    members.push_back(n);
    look_at(n);
  }
  std::ranges::sort(members);
  return members;
}

std::vector<std::uint32_t> elementwise_group(const Uses& uses, const Fusing& fusing, std::uint32_t last, ValueId stop) {
  return elementwise_closure(uses, fusing, {last}, fusing.max_nodes, stop);
}

std::vector<std::uint32_t> with_shared_results(
    const Uses& uses, const Fusing& fusing, std::vector<std::uint32_t> group,
    const std::function<bool(const std::vector<std::uint32_t>& nodes)>& takes) {
  const std::uint32_t last = group.back();
  const Shape& shape = uses.type(uses.node(last).outputs[0]).shape;
  std::vector<std::uint32_t> refused;  // with which it would be cut short, or is not taken
  const auto is_shared = [&](std::uint32_t n) {
    const Node& node = uses.node(n);
    return node.outputs.size() == 1 && uses.type(node.outputs[0]).shape == shape && fusing.can(n) &&
           is_read_after(uses, node.outputs[0], last, group);
  };
  // The latest: who reads what others make is decided first.
  const auto next = [&] {
    std::optional<std::uint32_t> found;
    for (std::uint32_t m : group)
      for (std::size_t i = 0; i < walked_operands(*tosa::find(uses.node(m).op)); ++i) {
        const std::int32_t producer = uses.producer[uses.node(m).inputs[i]];
        const auto n = static_cast<std::uint32_t>(producer);
        if (producer < 0 || (found && n <= *found) || holds(group, n) || holds(refused, n)) continue;
        if (is_shared(n)) found = n;
      }
    return found;
  };
  while (const auto n = next()) {
    std::vector<std::uint32_t> members = group;
    members.push_back(*n);
    members = elementwise_closure(uses, fusing, std::move(members), fusing.max_nodes + 1, no_value);
    if (members.size() <= fusing.max_nodes && takes(members))
      group = std::move(members);
    else
      refused.push_back(*n);
  }
  return group;
}

bool longest_epilogue(const Uses& uses, const Fusing& fusing, ValueId value,
                      const std::function<bool(const std::vector<std::uint32_t>& nodes)>& take) {
  const Dim elements = elements_of(uses.type(value).shape);
  std::vector<std::uint32_t> path;
  for (ValueId at = value;;) {
    const auto user = fusing.joins ? joint(uses, fusing, at) : uses.only_user(at);
    if (!user || !fusing.can(*user)) break;
    at = uses.node(*user).outputs[0];
    if (elements_of(uses.type(at).shape) != elements) break;
    path.push_back(*user);
  }
  for (; !path.empty(); path.pop_back()) {
    const std::vector<std::uint32_t> nodes = elementwise_group(uses, fusing, path.back(), value);
    // Also where `max_nodes` has cut it short: what is left out could not read `value`, which is nowhere.
    const auto& users = uses.users[value];
    const bool whole = std::all_of(path.begin(), path.end(), [&](std::uint32_t n) { return holds(nodes, n); }) &&
                       std::all_of(users.begin(), users.end(), [&](std::uint32_t n) { return holds(nodes, n); });
    if (whole && take(nodes)) return true;
  }
  return false;
}

}  // namespace tosaic::plan
