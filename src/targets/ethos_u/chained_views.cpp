// SPDX-License-Identifier: Apache-2.0
// A chain of commands on Ethos-U85 is computed in the shape of its first. Vela 5.1.0 compares a command with the one
// before it as that was written, with the activation that is fused to it where there is one: behind a view, or behind
// a sum, which Vela turns, the first command has other dims. It then gives the command and its operands those dims,
// which goes wrong for operands from memory (docs/developer/ethos-u.md, 3.7):
//   a part of a larger tensor, a SLICE: it keeps its dims, elements are taken from other places and stored in others;
//   what was written in those dims itself: it is stored in bricks, and placed as if it were dense;
//   what is read as an image of another height: it is taken for one in several tiles.
// Such a command is computed outside of the chain.
#include <algorithm>
#include <set>

#include "targets/ethos_u/chains.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {
namespace {

const Ints unknown{-1};

// The commands of a chain up to a value.
struct Chain {
  std::set<Ints> shapes;      // of all of them, without leading ones
  std::optional<Shape> last;  // what a command behind is compared with
  bool open = true;           // it may go on: nobody else reads what is between
};

class ChainedViews {
 public:
  explicit ChainedViews(const Graph& graph) : graph_(graph), chains_(graph.values.size()) {}

  // By node: whether it must be kept out of its chain.
  std::vector<char> found() {
    std::vector<char> list;
    for (const Node& node : graph_.nodes) list.push_back(visit(node));
    return list;
  }

 private:
  bool visit(const Node& node) {
    if (node.outputs.size() != 1) return false;
    if (commands_elements(node)) return command(node);
    const ValueId y = node.outputs[0];
    if (goes_along(node))
      follow(node);
    else if (tosa::is_reduction(node.op) || node.op == tosa::op::argmax)
      chains_[y] = {{unknown}, std::nullopt};  // turned, or written as other commands in dims of their own
    else
      start(y);
    return false;
  }

  // Views are none of the chain's.
  void follow(const Node& node) {
    const ValueId x = node.inputs[0], y = node.outputs[0];
    if (node.op == tosa::op::reshape || node.op == tosa::op::identity) {
      chains_[y] = chains_[x];
      chains_[y].open &= once_[x] != 0;
    } else if (!open(x)) {
      start(y);
    } else {
      chains_[y] = chains_[x];
      chains_[y].shapes.insert(dims(y));
      if (node.op == tosa::op::table || node.op == tosa::op::clamp) chains_[y].last = graph_[y].type.shape;
    }
  }

  bool command(const Node& node) {
    const ValueId y = node.outputs[0];
    const Shape& shape = graph_[y].type.shape;
    const auto tensors = tensor_operands(node);
    start(y);
    for (std::size_t i : tensors) {
      const ValueId v = node.inputs[i];
      if (v == no_value || !open(v) || !chains_[v].last || !compared_equal(*chains_[v].last, shape)) continue;
      const bool read_again = std::any_of(tensors.begin(), tensors.end(), [&](std::size_t j) {
        return j != i && !(graph_[node.inputs[j]].is_constant() && graph_[node.inputs[j]].type.shape.elements() == 1);
      });
      if (read_again && chains_[v].shapes != std::set<Ints>{dims(y)}) {
        chains_[y] = {{unknown}, std::nullopt};  // the shape that it is given is nobody else's
        return true;
      }
      chains_[y].shapes.insert(chains_[v].shapes.begin(), chains_[v].shapes.end());
    }
    return false;
  }

  bool open(ValueId v) const { return once_[v] && chains_[v].open && !chains_[v].shapes.empty(); }
  void start(ValueId y) { chains_[y] = {{dims(y)}, graph_[y].type.shape}; }
  Ints dims(ValueId v) const { return without_leading_ones(graph_[v].type.shape); }

  const Graph& graph_;
  const std::vector<char> once_ = read_once(graph_);
  std::vector<Chain> chains_;  // by value
};

}  // namespace

void separate_chained_views(Graph& graph) { in_other_shapes(graph, ChainedViews(graph).found()); }

}  // namespace tosaic::ethos_u
