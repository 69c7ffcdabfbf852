// SPDX-License-Identifier: Apache-2.0
// Ethos-U85 chains elementwise commands: what one gives, the next takes without memory between. Vela 5.1.0 makes two
// kinds of chains that compute something else (docs/developer/ethos-u.md, 3.7):
//   two tables, one of them of 16 bits, which fills the memory for tables: both are loaded before the first command;
//   sums over a dim that is not the last, one chained to another: the one in memory is given too little of it.
// Such a command gets another shape (chains.h); views are free.
#include <set>

#include "targets/ethos_u/chains.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

using Tables = std::set<ValueId>;

class Chains {
 public:
  explicit Chains(const Graph& graph) : graph_(graph), behind_(graph.values.size()), before_(graph.values.size()) {
    sums_.resize(graph.values.size());
    look_ahead();
  }

  // By node: whether it must not be chained to what is before it.
  std::vector<char> broken() {
    std::vector<char> list;
    for (const Node& node : graph_.nodes) list.push_back(visit(node));
    return list;
  }

 private:
  // The tables that a value meets further on before its chain ends.
  void look_ahead() {
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (!goes_along(*node) && !commands_elements(*node)) continue;
      const ValueId y = node->outputs[0];
      Tables met = once_[y] ? behind_[y] : Tables{};
      if (node->op == tosa::op::table) met.insert(node->inputs[1]);
      for (std::size_t i : tensor_operands(*node))
        if (node->inputs[i] != no_value) behind_[node->inputs[i]].insert(met.begin(), met.end());
    }
  }

  // Whether the node must not be chained to what is before it.
  bool visit(const Node& node) {
    if (node.op == tosa::op::reduce_sum) {
      const Shape& shape = graph_[node.inputs[0]].type.shape;
      sums_[node.outputs[0]] = node.attrs.get<std::int64_t>("axis") != shape.rank() - 1;
      return false;
    }
    if (!goes_along(node) && !commands_elements(node)) return false;
    const ValueId y = node.outputs[0];
    int sums = 0;
    Tables met;
    for (std::size_t i : tensor_operands(node)) {
      const ValueId v = node.inputs[i];
      sums += sums_[v];
      if (once_[v]) met.insert(before_[v].begin(), before_[v].end());
    }
    if (commands_elements(node) && (sums > 1 || (once_[y] && collide(met, behind_[y])))) return true;
    sums_[y] = sums > 0;
    before_[y] = std::move(met);
    if (node.op == tosa::op::table) before_[y].insert(node.inputs[1]);
    return false;
  }

  bool collide(const Tables& first, const Tables& then) const {
    for (ValueId a : first)
      for (ValueId b : then)
        if (a != b && (wide(a) || wide(b))) return true;
    return false;
  }
  bool wide(ValueId table) const { return graph_[table].type.dtype == DType::i16; }

  const Graph& graph_;
  const std::vector<char> once_ = read_once(graph_);
  std::vector<Tables> behind_, before_;
  std::vector<char> sums_;  // stored by such a sum, or computed from it by what goes along
};

}  // namespace

void separate_chains(Graph& graph) { in_other_shapes(graph, Chains(graph).broken()); }

}  // namespace tosaic::ethos_u
