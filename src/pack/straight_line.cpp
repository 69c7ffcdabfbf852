// SPDX-License-Identifier: Apache-2.0
#include "pack/straight_line.h"

#include "ir/program_operators.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

namespace tosaic::packing {
namespace {

using Values = std::vector<ValueId>;

class Line {
 public:
  explicit Line(Graph& graph) : graph_(graph) {}

  void run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (Node& node : nodes) add(std::move(node));
  }

 private:
  void add(Node node) {
    if (node.regions.empty()) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    add(program::op::start, {}, node.outputs, {}, node.loc);
    node.op == higher_order::op::while_loop ? loop(node) : branch(node);
  }

  void add(Operator op, Values inputs, Values outputs, Attrs attrs, const LocRef& loc) {
    graph_.nodes.push_back({op, std::move(inputs), std::move(attrs), std::move(outputs), loc, {}});
  }
  void jump(Values condition, std::int64_t to, const LocRef& loc) {
    add(program::op::jump, std::move(condition), {}, {{"to", to}}, loc);
  }
  void mark(std::int64_t at, Values needed, const LocRef& loc) {
    add(program::op::label, std::move(needed), {}, {{"at", at}}, loc);
  }

  void branch(const Node& node) {
    const Values given(node.inputs.begin() + 1, node.inputs.end());
    const std::int64_t otherwise = labels_++, end = labels_++;
    jump({node.inputs[0]}, otherwise, node.loc);
    body(node.regions[0], given, node);
    jump({}, end, node.loc);
    mark(otherwise, {}, node.loc);
    body(node.regions[1], given, node);
    mark(end, {}, node.loc);
  }

  // A body that writes the branch's results: by the nodes that compute them, where each has one of its own.
  void body(const Graph& from, const Values& given, const Node& node) {
    const auto made_by = producers(from);
    Values wanted(from.values.size(), no_value), to;
    for (std::size_t i = 0; i < from.outputs.size(); ++i) {
      const ValueId v = from.outputs[i];
      const bool writes = made_by[v] >= 0 && wanted[v] == no_value;
      if (writes) wanted[v] = node.outputs[i];
      to.push_back(writes ? no_value : node.outputs[i]);
    }
    const Values results = inlined(from, given, wanted);
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i] != no_value) add(program::op::copy, {results[i]}, {to[i]}, {}, node.loc);
  }

  // What is carried lies in the loop's results from the first turn on. A turn's results are kept elsewhere until all of
  // what it reads has been read.
  void loop(const Node& node) {
    const Values& carried = node.outputs;
    Values given = carried;
    given.insert(given.end(), node.inputs.begin() + static_cast<std::ptrdiff_t>(carried.size()), node.inputs.end());
    for (std::size_t i = 0; i < carried.size(); ++i)
      add(program::op::copy, {node.inputs[i]}, {carried[i]}, {}, node.loc);
    const std::int64_t again = labels_++, end = labels_++;
    mark(again, {}, node.loc);
    jump(inlined(node.regions[0], given, {}), end, node.loc);
    Values next = inlined(node.regions[1], given, {});
    for (std::size_t i = 0; i < next.size(); ++i)
      if (next[i] != carried[i] && std::ranges::count(carried, next[i]) > 0) {  // exchanged with another
        const ValueId kept = fresh(next[i]);
        add(program::op::copy, {next[i]}, {kept}, {}, node.loc);
        next[i] = kept;
      }
    for (std::size_t i = 0; i < next.size(); ++i)
      if (next[i] != carried[i]) add(program::op::copy, {next[i]}, {carried[i]}, {}, node.loc);
    jump({}, again, node.loc);
    mark(end, given, node.loc);
  }

  ValueId fresh(ValueId like) {
    return graph_.add_value(fmt::format("{}.{}", graph_[like].name, graph_.values.size()), graph_[like].type);
  }

  // The body's nodes with these operands; its results. `wanted`: where one is to lie.
  Values inlined(const Graph& from, const Values& given, const Values& wanted) {
    Values of(from.values.size(), no_value);
    for (std::size_t i = 0; i < given.size(); ++i) of[from.inputs[i]] = given[i];
    for (ValueId v = 0; v < from.values.size(); ++v) {
      if (of[v] != no_value) continue;
      if (v < wanted.size() && wanted[v] != no_value)
        of[v] = wanted[v];
      else
        of[v] =
            graph_.add_value(fmt::format("{}.{}", from[v].name, graph_.values.size()), from[v].type, from[v].constant);
    }
    for (Node node : from.nodes) {
      for (auto* list : {&node.inputs, &node.outputs})
        for (ValueId& v : *list)
          if (v != no_value) v = of[v];
      add(std::move(node));
    }
    Values results;
    for (ValueId v : from.outputs) results.push_back(of[v]);
    return results;
  }

  Graph& graph_;
  std::int64_t labels_ = 0;
};

}  // namespace

void put_in_line(Graph& graph) { Line(graph).run(); }

}  // namespace tosaic::packing
