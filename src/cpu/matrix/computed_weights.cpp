// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/computed_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "cpu/matrix/quantised_weight.h"
#include "cpu/window/window.h"
#include "ir/tosa_operators.h"
#include "plan/per_row_quantisation.h"
#include "plan/quantised_form.h"
#include "plan/views.h"

namespace tosaic::cpu {
namespace {

class Weights {
 public:
  Weights(Graph& graph, std::span<const ValueId> observed, bool lasting)
      : graph_(graph),
        producer_(producers(graph)),
        fixed_(graph.values.size(), 0),
        kept_(graph.values.size(), 0),
        lasting_(lasting) {
    for (ValueId v = 0; v < graph.values.size(); ++v) fixed_[v] = graph[v].is_constant();
    for (const Node& node : graph.nodes) {
      const bool all = !node.inputs.empty() && node.regions.empty() && node.outputs.size() == 1 &&
                       !tosa::is_variable(node.op) && node.op != tosa::op::custom &&
                       std::ranges::all_of(node.inputs, [&](ValueId v) { return v == no_value || fixed_[v]; });
      if (all) fixed_[node.outputs[0]] = 1;
    }
    for (ValueId v : observed)
      if (v < kept_.size()) kept_[v] = 1;
    for (ValueId v : graph.outputs) kept_[v] = 1;
  }

  Result<QuantisedWeights> run() {
    for (Node& node : graph_.nodes) {
      const tosa::Op* op = tosa::find(node.op);
      if (!op || node.inputs.size() < 2 || (!op->accumulates && !looks_up(node))) continue;
      const std::size_t at = looks_up(node) ? 0 : 1;
      const ValueId weight = node.inputs[at], other = node.inputs[1 - at];
      if (!fixed_[weight] || kept_[weight] || graph_[weight].is_constant() || (other != no_value && fixed_[other]))
        continue;
      TOSAIC_CHECK(take(node, weight));
    }
    if (changed_) drop_unread();
    return std::move(found_);
  }

 private:
  Graph& graph_;
  std::vector<std::int32_t> producer_;
  std::vector<char> fixed_;  // follows from constants
  std::vector<char> kept_;   // somebody wants to see it
  bool lasting_ = false;
  QuantisedWeights found_;
  std::map<std::pair<ValueId, std::int64_t>, std::shared_ptr<QuantisedWeight>> known_;  // of what views show, by rows
  bool changed_ = false;

  const Node* maker(ValueId v) const { return plan::maker(graph_, producer_, v); }
  ValueId skip_views(ValueId v) const { return plan::skip_views(graph_, producer_, v); }

  // What follows from constants, by this executor itself.
  Result<Bytes> computed(ValueId value) const {
    if (graph_[value].is_constant()) return graph_[value].constant;
    std::vector<const Node*> needed;
    std::set<ValueId> wanted{value};
    for (std::size_t n = static_cast<std::size_t>(producer_[value]) + 1; n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (node.outputs.size() != 1 || !wanted.contains(node.outputs[0])) continue;
      needed.push_back(&node);
      for (ValueId v : node.inputs)
        if (v != no_value) wanted.insert(v);
    }
    Graph alone;
    alone.name = graph_.name;
    std::map<ValueId, ValueId> here;
    for (ValueId v : wanted) here[v] = alone.add_value(graph_[v].name, graph_[v].type, graph_[v].constant);
    for (auto it = needed.rbegin(); it != needed.rend(); ++it) {
      Node& node = alone.nodes.emplace_back(**it);
      for (auto* values : {&node.inputs, &node.outputs})
        for (ValueId& v : *values)
          if (v != no_value) v = here.at(v);
    }
    alone.outputs = {here.at(value)};
    TOSAIC_TRY(Program program, Program::compile(alone, {.computes_weights = false}));
    TOSAIC_TRY(std::vector<Tensor> results, program.run(std::vector<Tensor>()));
    return results.at(0).data;
  }

  Status take(Node& node, ValueId weight) {
    changed_ = true;
    if (!found_.contains(weight)) {
      TOSAIC_TRY(auto quantised, matrix_of(node, weight));
      if (!quantised) {
        TOSAIC_TRY(graph_[weight].constant, computed(weight));
        return {};
      }
      found_[weight] = std::move(quantised);
    } else if (!takes_quantised(node)) {
      found_.erase(weight);  // read as a matrix and otherwise: floats for all
      TOSAIC_TRY(graph_[weight].constant, computed(weight));
      return {};
    }
    if (looks_up(node)) return {};
    if (const auto rows_of_int8 =
            plan::find_per_row_quantisation(graph_, producer_, node.inputs[0], found_[weight]->panels().k))
      plan::read_quantised_rows(node, *rows_of_int8);
    return {};
  }

  static bool looks_up(const Node& node) { return node.op == tosa::op::gather; }
  bool takes_quantised(const Node& node) const {
    if (!looks_up(node)) return is_matrix_product(node);
    const TensorType& table = graph_[node.inputs[0]].type;
    return table.dtype == DType::f32 && table.shape.size(0) == 1 && graph_[node.inputs[1]].type.dtype == DType::i32;
  }

  bool is_matrix_product(const Node& node) const {
    if (graph_[node.inputs[0]].type.dtype != DType::f32) return false;
    if (node.op == tosa::op::matmul) return graph_[node.inputs[1]].type.shape.size(0) == 1;
    return node.op == tosa::op::conv2d && graph_[node.inputs[2]].is_constant() && window_of(graph_, node).is_matrix();
  }

  using Weight = std::shared_ptr<QuantisedWeight>;

  // Null: not the values, or product of values and scales, that a kernel takes. What a table of rows and a layer's
  // weight have in common is there once.
  Result<Weight> matrix_of(const Node& node, ValueId weight) {
    if (!takes_quantised(node)) return Weight();
    QuantisedRows rows;
    const Shape& shape = graph_[weight].type.shape;
    rows.by_columns = node.op == tosa::op::matmul;
    rows.n = shape.size(rows.by_columns ? 2 : looks_up(node) ? 1 : 0);
    rows.k = shape.elements() / std::max<std::int64_t>(rows.n, 1);
    if (rows.by_columns) return unscaled(std::move(rows), weight);
    Weight& known = known_[{skip_views(weight), rows.n}];
    if (!known) { TOSAIC_TRY(known, rows_of(std::move(rows), weight)); }
    if (known && looks_up(node) && !known->keeps_rows) known->keeps_rows = true;
    return known;
  }

  Result<Weight> rows_of(QuantisedRows rows, ValueId weight) const {
    const Node* product = maker(skip_views(weight));
    if (!product || product->op != tosa::op::mul) return unscaled(std::move(rows), weight);
    rows.form = plan::find_quantised_form(graph_, *product, rows.k);
    if (!rows.form) return Weight();
    rows.group = rows.form->group;
    TOSAIC_TRY(rows.scales, computed(rows.form->scales));
    const ValueId rows_of_int8 = rows.form->quantised;
    return of_values(std::move(rows), rows_of_int8);
  }

  // Whole numbers; the scales stand after the product.
  Result<Weight> unscaled(QuantisedRows rows, ValueId weight) const {
    const Node* cast = maker(skip_views(weight));
    if (!cast || cast->op != tosa::op::cast || !is_integer(graph_[cast->inputs[0]].type.dtype)) return Weight();
    rows.group = rows.k;
    return of_values(std::move(rows), weight);
  }

  // Null: these do not fit 8 bits, or groups are such that words do not divide them.
  Result<Weight> of_values(QuantisedRows rows, ValueId values) const {
    // Sums of 255 times 128 fit 32 bits.
    if (rows.n * rows.k == 0 || rows.group % 4 != 0 || rows.group > 1 << 16) return Weight();
    if (auto constant = plan::quantised_constant(graph_, producer_, values)) {
      rows.values = *std::move(constant);
    } else {
      TOSAIC_TRY(const Bytes floats, computed(skip_views(values)));
      rows.values.bytes = plan::as_bytes(floats.as<float>());
      if (rows.values.bytes.null()) return Weight();
    }
    const int bits = rows.group % 8 == 0 && rows.values.fits_four_bits() ? 4 : 8;
    return lasting_ ? QuantisedWeight::shared(std::move(rows), bits)
                    : std::make_shared<QuantisedWeight>(std::move(rows), bits);
  }

  // Nodes that nobody reads any more. Values keep their numbers.
  void drop_unread() {
    std::vector<char> read = kept_;
    std::vector<Node> nodes;
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      Node& node = graph_.nodes[n];
      const bool fixed = std::ranges::any_of(
          node.outputs, [&](ValueId v) { return v != no_value && (found_.contains(v) || graph_[v].is_constant()); });
      const bool wanted = node.outputs.empty() || !node.regions.empty() || tosa::is_variable(node.op) ||
                          node.op == tosa::op::custom ||
                          std::ranges::any_of(node.outputs, [&](ValueId v) { return v != no_value && read[v]; });
      if (fixed || !wanted) continue;
      for (ValueId v : node.inputs)
        if (v != no_value) read[v] = 1;
      nodes.push_back(std::move(node));
    }
    std::ranges::reverse(nodes);
    graph_.nodes = std::move(nodes);
  }
};

}  // namespace

Result<QuantisedWeights> compute_weights(Graph& graph, std::span<const ValueId> observed, bool lasting) {
  return Weights(graph, observed, lasting).run();
}

}  // namespace tosaic::cpu
