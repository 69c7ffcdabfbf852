// SPDX-License-Identifier: Apache-2.0
// How a graph is rewritten: its nodes are taken out and written anew one after the other, where each stays, goes, or
// has others before it, after it or in its place. Values keep their ids; new ones are added to the graph.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

// Values to be read in place of others; built during a walk, applied by rewriting operands and outputs.
class Forward {
 public:
  ValueId operator()(ValueId v) const { return v < to_.size() ? to_[v] : v; }
  // `from`'s readers take `to` (already forwarded) from now on.
  void set(ValueId from, ValueId to);
  bool changed() const { return !to_.empty(); }
  void operands(Node& node) const;
  void outputs(Graph& graph) const;

 private:
  std::vector<ValueId> to_;  // of the first values; the others stay
};

class Rewriter {
 public:
  explicit Rewriter(Graph& graph);

  // Those that the graph had.
  std::vector<Node>& nodes() { return nodes_; }
  // Hands on each of them. Its operands, and at last the graph's outputs, are what took their places by then.
  template <class Rewrite>
  void each(Rewrite rewrite) {
    for (Node& node : nodes_) {
      forward_.operands(node);
      rewrite(node);
    }
    forward_.outputs(graph_);
  }

  // The node stays. What is not kept is gone.
  void keep(Node node) { graph_.nodes.push_back(std::move(node)); }
  // A new node; gives `to`, which it writes.
  ValueId add(Operator op, std::vector<ValueId> inputs, Attrs attrs, ValueId to, LocRef loc);
  // Nodes that are handed on from now on, and the graph's outputs, read `by` where they read `v`.
  void replace(ValueId v, ValueId by) { forward_.set(v, by); }
  bool replaced(ValueId v) const { return forward_(v) != v; }
  bool replaced() const { return forward_.changed(); }

  // The node stays and computes in another form: where form(v) is not its result v, it writes that, and back(that, v,
  // loc) adds what makes v of it.
  template <class Form, class Back>
  void keep(Node node, Form form, Back back) {
    std::vector<std::pair<ValueId, ValueId>> made;
    for (ValueId& v : node.outputs)
      if (const ValueId other = v == no_value ? v : form(v); other != v) {
        made.emplace_back(v, other);
        v = other;
      }
    const LocRef loc = node.loc;
    keep(std::move(node));
    for (const auto& [v, other] : made) back(other, v, loc);
  }

 private:
  Graph& graph_;
  std::vector<Node> nodes_;
  Forward forward_;
};

}  // namespace tosaic
