// SPDX-License-Identifier: Apache-2.0
// Where the last bit of a quotient, a root or a logarithm decides, its call is marked "exact" and lowered as the
// nearest float (ops/lowering/exact.h): before floor, ceil, comparisons and casts to integers, and what computes
// element by element between, or sums: of whole numbers they are whole. A product of matrices ends it, or a sum of
// exponentials (a softmax): nothing behind one is a whole number by itself. Everywhere else the plain forms stay, which
// are as good as TOSA asks and several times as fast.
#include <algorithm>

#include "ir/marks.h"
#include "lower/lower.h"
#include "normalise/normalise.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

bool is_real(const TensorType& type) { return is_float(type.dtype) && !type.quantised(); }

// What a node does with the rounding of its operands.
enum class Does : std::uint8_t { hides, passes, shows };

class SeenRounding {
 public:
  SeenRounding(Graph& graph, bool is_body)
      : graph_(graph),
        used_(used_values(graph)),
        does_(graph.nodes.size(), Does::hides),
        reached_(graph.values.size()) {
    shown_.assign(graph.values.size(), 0);
    for (ValueId v : graph.outputs) shown_[v] = is_body;  // who reads the results of a body stands outside
  }

  void mark() {
    for (std::size_t n = 0; n < does_.size(); ++n) reach(n);
    for (std::size_t n = does_.size(); n-- > 0;) look_back(graph_.nodes[n], does_[n]);
  }

 private:
  bool rounds(const Node& node) const {
    const FoundOp found = find_aten(node.op);
    return found.op && found.op->has_exact_form && !node.outputs.empty() && node.outputs[0] != no_value &&
           is_real(graph_[node.outputs[0]].type);
  }

  // Which values come from such calls, and what their readers do.
  void reach(std::size_t n) {
    const Node& node = graph_.nodes[n];
    if (std::ranges::any_of(node.inputs, [&](ValueId v) { return v != no_value && reached_[v]; }))
      does_[n] = done_by(node);
    if (does_[n] != Does::passes && !rounds(node)) return;
    for (ValueId v : node.outputs)
      if (v != no_value && is_real(graph_[v].type)) reached_[v] = 1;
  }

  void look_back(Node& node, Does does) {
    const bool shown = std::ranges::any_of(node.outputs, [&](ValueId v) { return v != no_value && shown_[v]; });
    if (shown && rounds(node)) set_mark(node, mark::exact, true);
    if (does != Does::shows && !(does == Does::passes && shown)) return;
    for (ValueId v : node.inputs)
      if (v != no_value) shown_[v] = 1;
  }

  Does done_by(const Node& node) const {
    for (ValueId v : node.outputs) {
      if (v == no_value || !used_[v]) continue;
      if (graph_[v].type.quantised()) return Does::hides;
      if (!is_real(graph_[v].type)) return Does::shows;
    }
    const auto trial = try_node(graph_, node);
    return trial.ok() ? done_in(node, *trial) : Does::shows;  // a kernel outside, or bodies
  }

  Does done_in(const Node& node, const Trial& trial) const {
    std::vector<char> rounded(trial.graph.values.size(), 0), curved = rounded, summed = rounded;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const ValueId v = node.inputs[i]; v != no_value && reached_[v]) rounded[trial.operands[i]] = 1;
    bool compared = false, computed = false;
    for (const Node& made : trial.graph.nodes) {
      const tosa::Op* op = tosa::find(made.op);
      if (!op) return Does::shows;
      computed |= !op->chooses() && is_real(trial.graph[made.outputs[0]].type);
      const auto among = [&](const std::vector<char>& values) {
        return std::ranges::any_of(made.inputs, [&](ValueId v) { return v != no_value && values[v]; });
      };
      const bool reduces = tosa::is_reduction(made.op) || op->chooses();
      if (among(summed) || (op->accumulates && among(reduces ? curved : rounded))) {
        for (ValueId v : made.outputs) summed[v] = 1;
        continue;
      }
      if (!among(rounded)) continue;
      if (made.op == tosa::op::floor || made.op == tosa::op::ceil) return Does::shows;
      const DType type = trial.graph[made.outputs[0]].type.dtype;
      if (is_integer(type)) return Does::shows;
      compared |= type == DType::boolean;
      for (ValueId v : made.outputs) {
        rounded[v] = is_float(type);
        curved[v] = made.op == tosa::op::exp || among(curved);
      }
    }
    // Comparisons among what is computed join the branches of a smooth function; sign and threshold jump.
    if (compared && !computed) return Does::shows;
    return std::ranges::any_of(trial.results, [&](ValueId v) { return rounded[v] != 0; }) ? Does::passes : Does::hides;
  }

  Graph& graph_;
  const std::vector<char> used_;
  std::vector<Does> does_;
  std::vector<char> reached_, shown_;
};

}  // namespace

void mark_seen_rounding(Graph& graph, bool is_body) { SeenRounding(graph, is_body).mark(); }

}  // namespace tosaic
