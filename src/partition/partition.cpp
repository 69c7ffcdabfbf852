// SPDX-License-Identifier: Apache-2.0
#include "partition/partition.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "lower/lower.h"

namespace tosaic {
namespace {

// Everything that tells two types apart.
void append(std::string& key, const TensorType& type) {
  const auto add = [&](const auto& x) { key.append(reinterpret_cast<const char*>(&x), sizeof x); };
  add(type.dtype);
  add(type.rank());
  for (int d = 0; d < type.rank(); ++d) {
    const Dim dim = type.shape[d];
    add(dim.is_number() ? dim.value() : -1);
    if (!dim.is_number()) key += ranged_text(dim);
  }
  add(type.quantised());
  if (!type.quantised()) return;
  const Scales& s = *type.scales;
  add(s.axis);
  add(s.lowest);
  add(s.highest);
  add(s.scale.size());
  for (double scale : s.scale) add(scale);
  for (std::int64_t zero : s.zero_point) add(zero);
}

// What the answer depends on: the call, its types, the constants among its operands and which results are read.
// Lowerings read constants (masks, biases, the numbers of a sum): small ones count by what they hold, large ones by
// where they lie.
std::string question(const Graph& graph, const Node& node, const std::vector<char>& used) {
  Graph one;
  Node copy = node;
  copy.loc = nullptr;
  std::string types;
  const auto take = [&](ValueId& v) {
    if (v == no_value) return;
    const Value& value = graph[v];
    append(types, value.type);
    types += used[v] ? 'v' : 'u';
    if (value.is_constant()) {
      if (value.constant.size() <= 64)
        types.append("=").append(value.constant.text());
      else
        types += fmt::format("@{}", fmt::ptr(value.constant.data()));
    }
    v = one.add_value(std::to_string(one.values.size()), {});
  };
  for (ValueId& v : copy.inputs) take(v);
  for (ValueId& v : copy.outputs) take(v);
  one.nodes.push_back(std::move(copy));
  return print(one) + types;
}

void forget_what_was_found(Node& node) {
  if (!has_mark(node, mark::set_aside) && !has_mark(node, mark::own_delegate)) return;
  Attrs kept;
  for (const auto& [name, value] : node.attrs)
    if (name != mark::set_aside.name && name != mark::own_delegate.name) kept.set(name, value);
  node.attrs = std::move(kept);
}

Diagnostic stays_in_program(const Node& node) {
  Diagnostic why =
      error("target.control-flow",
            fmt::format("{} belongs to the host program: delegates run what its subgraphs compute", node.op));
  if (const std::string* kept = find_mark(node, mark::kept)) why.notes.push_back(*kept);
  return why;
}

// A delegate computes tensors of one size, so it would take what lies after the values for values. The sizes that
// follow from the inputs' are numbers here.
Status sizes_known(const Graph& graph, const Node& node) {
  const auto check = [&](ValueId v) -> Status {
    if (v == no_value) return {};
    if (graph[v].type.shape.is_static()) return {};
    return error("target.data-dependent", fmt::format("how large '{}' is depends on values (it is {})", graph[v].name,
                                                      to_string(graph[v].type)));
  };
  for (ValueId v : node.inputs) TOSAIC_CHECK(check(v));
  for (ValueId v : node.outputs) TOSAIC_CHECK(check(v));
  return {};
}

// What follows from constants alone could be computed anywhere: where it is first read, it crosses no boundary.
void with_first_reader(const Graph& graph, const std::vector<Placement>& placements, std::vector<int>& level) {
  std::vector<char> fixed(graph.values.size(), 0);
  for (ValueId v = 0; v < graph.values.size(); ++v) fixed[v] = graph[v].is_constant();
  std::vector<char> moves(graph.nodes.size(), 0);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    moves[n] = placements[n].region >= 0 && !node.inputs.empty() &&
               std::ranges::all_of(node.inputs, [&](ValueId v) { return v == no_value || fixed[v]; });
    for (ValueId v : node.outputs)
      if (v != no_value) fixed[v] = moves[n];
  }
  const auto users = consumers(graph);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    if (!moves[n]) continue;
    int first = std::numeric_limits<int>::max();
    for (ValueId v : graph.nodes[n].outputs)
      if (v != no_value)
        for (std::uint32_t user : users[v]) first = std::min(first, level[user] - (level[user] % 2 == 0 ? 1 : 0));
    if (first != std::numeric_limits<int>::max()) level[n] = std::max(level[n], first);
  }
}

// Even levels hold nodes that stay, odd ones delegated nodes; along any path levels never fall. So all
// delegated nodes of one level form a convex region. Around what has a delegate of its own they rise.
std::vector<int> levels(const Graph& graph, const std::vector<Placement>& placements) {
  std::vector<int> level(graph.nodes.size(), 0);
  auto made_by = producers(graph);
  const auto alone = [&](std::size_t n) { return has_mark(graph.nodes[n], mark::own_delegate); };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    int parity = placements[n].region >= 0 ? 1 : 0;
    int needed = parity;
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value && made_by[v] >= 0) {
        const auto maker = static_cast<std::size_t>(made_by[v]);
        int before = level[maker];
        if (parity == 1 && before % 2 == 1 && (alone(n) || alone(maker))) ++before;
        needed = std::max(needed, before % 2 == parity ? before : before + 1);
      }
    level[n] = needed;
  }
  with_first_reader(graph, placements, level);
  return level;
}

Graph region_graph(const Graph& graph, const std::vector<std::size_t>& members, const std::vector<char>& needed_outside,
                   std::vector<ValueId>& inputs, std::vector<ValueId>& outputs) {
  Graph region;
  region.name = graph.name;
  std::map<ValueId, ValueId> inside;
  for (std::size_t n : members) {
    Node node = graph.nodes[n];
    forget_what_was_found(node);
    for (ValueId& v : node.inputs) {
      if (v == no_value) continue;
      auto [it, fresh] = inside.try_emplace(v, no_value);
      if (fresh) {
        it->second = region.add_value(graph[v].name, graph[v].type, graph[v].constant);
        if (!graph[v].is_constant()) {
          region.inputs.push_back(it->second);
          inputs.push_back(v);
        }
      }
      v = it->second;
    }
    for (ValueId& v : node.outputs) {
      if (v == no_value) continue;
      ValueId made = region.add_value(graph[v].name, graph[v].type);
      inside[v] = made;
      if (needed_outside[v]) {
        region.outputs.push_back(made);
        outputs.push_back(v);
      }
      v = made;
    }
    region.nodes.push_back(std::move(node));
  }
  return region;
}

void count_regions_from(Graph& outer, std::int64_t first) {
  for (Node& node : outer.nodes) {
    if (node.op == op::delegate) set_mark(node, mark::region, *find_mark(node, mark::region) + first);
    for (Graph& body : node.regions) count_regions_from(body, first);
  }
}

void partition_bodies(Partition& whole, const tosa::Spec& spec) {
  for (Node& node : whole.outer.nodes)
    for (Graph& body : node.regions) {
      Partition inside = partition(body, spec);
      count_regions_from(inside.outer, static_cast<std::int64_t>(whole.regions.size()));
      for (Graph& region : inside.regions) whole.regions.push_back(std::move(region));
      body = std::move(inside.outer);
    }
}

}  // namespace

// Of calls that are alike. An answer names no tensor and no location of the first call that asked.
struct Placer::Answer {
  std::optional<Trial> any;  // for no spec: every operator's first lowering
  std::optional<Status> sound;
  std::optional<Status> now;  // for the spec that is asked about
};

Placer::Placer(const Graph& graph, bool several) : graph_(graph), several_(several), used_(used_values(graph)) {}
Placer::~Placer() = default;

// What stays behind is a kernel's business, but it has to be the call that the program says.
Status Placer::sound(const Node& call, Answer& answer) const {
  if (!answer.sound) answer.sound = shapes_agree(graph_, call);
  return *answer.sound;
}

Status Placer::lowers(const Node& call, Answer& answer, const tosa::Spec& spec) const {
  // A target that takes the first lowering of everything in the call is not offered another.
  if (several_ && !answer.any) {
    auto any = try_lowering(graph_, call, used_, nullptr);
    answer.any = any.ok() ? std::move(*any) : Trial();
  }
  if (answer.any && !answer.any->results.empty() && holds_to(call, used_, *answer.any, spec).ok()) return {};
  TOSAIC_TRY(const Trial trial, try_lowering(graph_, call, used_, &spec));
  return holds_to(call, used_, trial, spec);
}

Status Placer::about(std::size_t n, const tosa::Spec& spec) {
  const Node& node = graph_.nodes[n];
  Answer& answer = *answers_[n];
  Node call = node;
  call.loc = nullptr;
  if (!node.regions.empty() && !spec.has(tosa::Feature::controlflow)) return located(stays_in_program(node), node.loc);
  if (const std::string* why = find_mark(node, mark::set_aside))
    return located(error("target.set-aside", *why), node.loc);
  Status taken = within_types(graph_, node, used_, spec);
  if (taken.ok()) taken = sizes_known(graph_, node);
  if (taken.ok()) {
    if (!answer.now) answer.now = lowers(call, answer, spec);
    taken = *answer.now;
  }
  if (!taken.ok())
    if (Status contradiction = sound(call, answer); !contradiction.ok()) taken = std::move(contradiction);
  if (const std::string* floats = find_mark(node, mark::floats); floats && !taken.ok())
    taken.error().notes.insert(taken.error().notes.begin(), *floats);
  return taken.ok() ? taken : Status(located(std::move(taken.error()), node.loc));
}

std::vector<Placement> Placer::place(const tosa::Spec& spec) {
  if (answers_.empty())
    for (const Node& node : graph_.nodes) {
      auto& answer = by_question_[question(graph_, node, used_)];
      if (!answer) answer = std::make_unique<Answer>();
      answers_.push_back(answer.get());
    }
  for (Answer* answer : answers_) answer->now.reset();
  std::vector<Placement> placements(graph_.nodes.size());
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    Status taken = about(n, spec);
    if (taken.ok())
      placements[n].region = 0;
    else
      placements[n].reason = std::move(taken.error());
  }
  return placements;
}

Partition partition(const Graph& graph, const tosa::Spec& spec) {
  Partition result;
  result.placements = Placer(graph).place(spec);
  auto level = levels(graph, result.placements);

  // Regions are numbered by level; which values leave theirs?
  std::map<int, std::vector<std::size_t>> by_level;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) by_level[level[n]].push_back(n);
  auto made_by = producers(graph);
  std::vector<char> leaves(graph.values.size(), 0);
  for (ValueId v : graph.outputs) leaves[v] = 1;
  for (const State& s : graph.states) leaves[s.output] = 1;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId v : graph.nodes[n].inputs)
      if (v != no_value && made_by[v] >= 0 && level[static_cast<std::size_t>(made_by[v])] != level[n]) leaves[v] = 1;

  result.outer = graph;
  result.outer.nodes.clear();
  for (const auto& [l, members] : by_level) {
    if (l % 2 == 0) {
      for (std::size_t n : members) forget_what_was_found(result.outer.nodes.emplace_back(graph.nodes[n]));
      continue;
    }
    const int k = static_cast<int>(result.regions.size());
    Node call;
    call.op = op::delegate;
    set_mark(call, mark::region, std::int64_t{k});
    result.regions.push_back(region_graph(graph, members, leaves, call.inputs, call.outputs));
    for (std::size_t n : members) result.placements[n].region = k;
    result.outer.nodes.push_back(std::move(call));
  }
  drop_dead(result.outer);
  partition_bodies(result, spec);
  return result;
}

void compute_outputs(Graph& graph) {
  const auto made_by = producers(graph);
  std::set<ValueId> given;
  for (ValueId& v : graph.outputs) {
    if (made_by[v] >= 0 && given.insert(v).second) continue;
    const ValueId copy = graph.add_value(fmt::format("{}.out{}", graph[v].name, given.size()), graph[v].type);
    graph.nodes.push_back({aten::op::clone, {v}, {}, {copy}, nullptr, {}});
    given.insert(copy);
    v = copy;
  }
}

Result<Partition> whole(const Graph& graph, const tosa::Spec& spec) {
  Partition result;
  result.placements = Placer(graph).place(spec);
  // What stays for a reason of its own makes its neighbours stay: conversions at the boundary.
  for (const bool conversions : {false, true})
    for (Placement& placement : result.placements)
      if (placement.region < 0 && (placement.reason.code == "target.conversion") == conversions)
        return std::move(placement.reason);
  if (!graph.states.empty())
    return error("target.state", fmt::format("the program writes the buffer '{}': a delegate keeps none",
                                             graph[graph.states.front().output].name));
  result.regions.push_back(graph);
  result.outer = graph;
  Node call;
  call.op = op::delegate;
  call.inputs = graph.inputs;
  call.outputs = graph.outputs;
  set_mark(call, mark::region, std::int64_t{0});
  result.outer.nodes = {std::move(call)};
  for (Graph* made : {&result.outer, &result.regions[0]}) drop_dead(*made);  // the values of what was folded away
  return result;
}

}  // namespace tosaic
