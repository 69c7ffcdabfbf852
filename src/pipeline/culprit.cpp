// SPDX-License-Identifier: Apache-2.0
#include "pipeline/culprit.h"

#include <fmt/format.h>
#include <algorithm>
#include "ir/marks.h"

namespace tosaic {
namespace {

// Nodes [first, last) of a region as a graph of their own.
Graph part_of(const Graph& region, std::size_t first, std::size_t last) {
  Graph part = region;
  part.nodes.assign(region.nodes.begin() + static_cast<std::ptrdiff_t>(first),
                    region.nodes.begin() + static_cast<std::ptrdiff_t>(last));
  part.inputs.clear();
  part.outputs.clear();
  std::vector<char> made(region.values.size(), 0), read(region.values.size(), 0), leaves(region.values.size(), 0);
  for (ValueId v : region.outputs) leaves[v] = 1;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const bool inside = n >= first && n < last;
    for (ValueId v : region.nodes[n].inputs) {
      if (v == no_value) continue;
      if (!inside) leaves[v] = 1;
      if (!inside || made[v] || read[v] || region[v].is_constant()) continue;
      read[v] = 1;
      part.inputs.push_back(v);
    }
    for (ValueId v : region.nodes[n].outputs)
      if (inside && v != no_value) made[v] = 1;
  }
  for (const Node& node : part.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value && leaves[v]) part.outputs.push_back(v);
  drop_dead(part);
  return part;
}

// Compilers like Vela take no graph without inputs, and there is nothing to compile in one without outputs.
bool can_stand_alone(const Graph& part) { return !part.inputs.empty() && !part.outputs.empty(); }

// The nodes whose location in the user's program is the fault's: [first, last).
std::optional<std::pair<std::size_t, std::size_t>> named_by(const Diagnostic& why, const Graph& region) {
  if (why.context.empty()) return std::nullopt;
  std::optional<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    if (located(Diagnostic{}, region.nodes[n].loc).context != why.context) continue;
    if (!found) found.emplace(n, n);
    found->second = n + 1;
  }
  return found;
}

// What makes a device compute two calls alike: the operator, and its operands but for their scales.
std::string kind_of(const Graph& graph, const Node& node) {
  std::string kind = node.op.text();
  for (const auto* values : {&node.inputs, &node.outputs})
    for (ValueId v : *values)
      kind += v == no_value ? " -" : fmt::format(" {}", to_string(graph[v].type.with(std::optional<Scales>{})));
  return kind;
}

template <class F>
void each_node(Graph& graph, const F& f) {
  for (Node& node : graph.nodes) {
    f(graph, node);
    for (Graph& body : node.regions) each_node(body, f);
  }
}

std::string name_of_result(const Graph& graph, const Node& node) {
  for (ValueId v : node.outputs)
    if (v != no_value) return graph[v].name;
  return "";
}

// Is a node of the program the one that stands in a region?
class Itself {
 public:
  Itself(const Graph& region, const Node& node) : node_(node), name_(name_of_result(region, node)) {}
  bool operator()(const Graph& graph, const Node& other) const {
    return other.op == node_.op && other.loc == node_.loc && name_of_result(graph, other) == name_;
  }

 private:
  const Node& node_;
  const std::string name_;
};

std::string said_of(const Diagnostic& why) { return fmt::format("{}: {}", why.code, why.message); }

std::string reason_for(const std::string& target, const Diagnostic& why) {
  return fmt::format("what Vela makes of it for {} is wrong ({})", target, said_of(why));
}

}  // namespace

Culprit find_culprit(const Graph& region, const Fault& fault, const WrongWith& wrong_with) {
  std::size_t right = 0, wrong = region.nodes.size();
  const auto ask = [&](std::size_t count) {
    if (count <= right || count >= wrong) return;
    const Graph part = part_of(region, 0, count);
    (can_stand_alone(part) && wrong_with(part, fault.inputs) ? wrong : right) = count;
  };
  if (const auto named = named_by(fault.why, region)) {
    ask(named->second);
    ask(named->first);
  }
  while (wrong - right > 1) ask(right + (wrong - right) / 2);
  Culprit found{wrong - 1, false};
  if (region.nodes.size() == 1) return found;
  const Graph alone = part_of(region, wrong - 1, wrong);
  found.right_alone = can_stand_alone(alone) && !wrong_with(alone, fault.inputs);
  return found;
}

SetAside::Marked& SetAside::entry(const Node& node, std::string kind, bool outside, const Diagnostic& why) {
  const auto same =
      std::ranges::find_if(marked_, [&](const Marked& m) { return m.loc == node.loc && m.op == node.op; });
  Marked& marked = same == marked_.end() ? marked_.emplace_back() : *same;
  marked = {node.loc, node.op, std::move(kind), outside, why, marked.count};
  return marked;
}

void SetAside::mark(Graph& program, const Node& node, const Graph& region, bool right_alone, const Diagnostic& why,
                    const std::string& target) {
  target_ = target;
  std::string kind = kind_of(region, node);
  const bool again = std::ranges::any_of(
      marked_, [&](const Marked& m) { return m.kind == kind && !(m.loc == node.loc && m.op == node.op); });
  const Itself itself(region, node);
  bool outside = !right_alone;
  each_node(program, [&](const Graph& graph, const Node& other) {
    if (itself(graph, other) && has_mark(other, mark::own_delegate)) outside = true;  // which did not help
  });
  std::size_t count = 0;
  each_node(program, [&](const Graph& graph, Node& other) {
    if (!itself(graph, other) && !(again && other.op == node.op && kind_of(graph, other) == kind)) return;
    ++count;
    if (outside)
      set_mark(other, mark::set_aside, reason_for(target, why));
    else
      set_mark(other, mark::own_delegate, true);
  });
  Marked& marked = entry(node, std::move(kind), outside, why);
  marked.count = std::max<std::size_t>(count, 1);
}

void SetAside::mark_all(Graph& program, const Graph& region, const Diagnostic& why, const std::string& target) {
  target_ = target;
  for (const Node& node : region.nodes) {
    const Itself itself(region, node);
    each_node(program, [&](const Graph& graph, Node& other) {
      if (itself(graph, other)) set_mark(other, mark::set_aside, reason_for(target, why));
    });
  }
  if (!region.nodes.empty()) entry(region.nodes[0], "", true, why).count = region.nodes.size();
}

std::vector<Diagnostic> SetAside::warnings() const {
  std::vector<Diagnostic> list;
  for (const Marked& m : marked_) {
    const std::string what = m.kind.empty() ? fmt::format("a whole delegate from {} on", m.op)
                             : m.count > 1  ? fmt::format("{} and {} more like it", m.op, m.count - 1)
                                            : m.op.text();
    const bool several = m.count > 1 && !m.kind.empty();
    Diagnostic why = warning(
        "self-check.set-aside",
        m.outside
            ? fmt::format("{} run{} on the CPU: what Vela makes of {} for {} is wrong", what, several ? "" : "s",
                          several ? "them" : "it", target_)
            : fmt::format("{} {} a delegate of {} own: Vela compiles {} wrongly together with the neighbours for {}",
                          what, several ? "have" : "has", several ? "their" : "its", several ? "them" : "it", target_));
    why.notes.push_back(said_of(m.why));
    why.notes.insert(why.notes.end(), m.why.notes.begin(), m.why.notes.end());
    why.help =
        "the program's results are right; write it in another form there to keep it in the delegate, and please "
        "report the model; --require-full-delegation makes this an error";
    list.push_back(located(std::move(why), m.loc));
  }
  return list;
}

}  // namespace tosaic
