// SPDX-License-Identifier: Apache-2.0
#include "plan/raise.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ops/definitions/extension.h"
#include "plan/per_row_quantisation.h"
#include "plan/quantised_operands.h"
#include "plan/uses.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

constexpr std::int64_t longest_sum = 1 << 16;  // of 255 times 128, which 32 bits hold

// Which operand of a node may be quantised, and how many rows it then has; 0: none. MATMUL has them as columns.
struct Reading {
  std::size_t operand = 0;
  std::int64_t rows = 0;
  bool by_columns = false;
};

bool is_matrix_product(const tosa::View& view) {
  const Shape& weight = view.in(1).shape;
  return weight.elements() == weight.size(0) * weight.size(3) && view.all_are("stride", 1) && view.all_are("pad", 0);
}

Reading reading_of(const Graph& graph, const Node& node) {
  const bool table = node.op == tosa::op::gather;
  if (!table && node.op != tosa::op::matmul && node.op != tosa::op::conv2d) return {};
  const std::size_t operand = table ? 0 : 1;
  const TensorType& type = graph[node.inputs[operand]].type;
  if (!is_float(type.dtype) || !type.shape.is_static()) return {};
  if (node.op == tosa::op::conv2d)
    return {operand, is_matrix_product(tosa::View(graph, node)) ? type.shape.size(0) : 0};
  return {operand, type.shape.size(0) == 1 ? type.shape.size(table ? 1 : 2) : 0, !table};
}

class Raise {
 public:
  Raise(Graph& graph, const Raising& executor, std::span<const ValueId> observed)
      : graph_(graph), executor_(executor), uses_(graph, observed), fixed_(graph, uses_, executor.compute) {}

  Result<bool> run() {
    if (executor_.all_constants && !fixed_.any_from_int8()) return false;
    for (Node& node : graph_.nodes)
      if (fixed_.is_left(node)) TOSAIC_CHECK(raise(node));
    for (const Node& node : graph_.nodes)
      if (fixed_.is_left(node)) TOSAIC_CHECK(compute_operands(node));
    if (changed_) drop_unread();
    return changed_;
  }

 private:
  struct Operands {
    ValueId values = no_value, scales = no_value;
    QuantisedRows rows;
  };

  const Node* maker(ValueId v) const { return plan::maker(graph_, uses_.producer, v); }
  ValueId skip_views(ValueId v) const { return plan::skip_views(graph_, uses_.producer, v); }

  Reading reading(const Node& node) const {
    const Reading r = reading_of(graph_, node);
    return r.rows > 0 && executor_.takes(graph_, node) ? r : Reading{};
  }
  // Do products and look-ups alone read it, views of it included?
  bool is_read_quantised(ValueId v) const {
    return std::ranges::all_of(uses_.users[v], [&](std::uint32_t n) {
      const Node& user = graph_.nodes[n];
      if (is_view(user)) return is_read_quantised(user.outputs[0]);
      if (user.op.same_space(extension::op::scaled_product)) return true;
      const Reading r = reading(user);
      return r.rows > 0 && user.inputs[r.operand] == v;
    });
  }

  Status raise(Node& node) {
    const Reading r = reading(node);
    if (r.rows == 0) return {};
    const ValueId weight = node.inputs[r.operand];
    if (!fixed_[weight] || graph_[weight].is_constant()) return {};
    const ValueId root = skip_views(weight);
    const auto [known, added] = known_.try_emplace({root, r.rows, r.by_columns});
    if (added && is_read_quantised(root)) { TOSAIC_TRY(known->second, operands_of(root, weight, r)); }
    if (!known->second) return {};
    const Operands& operands = *known->second;
    Node raised{extension::op::scaled_gather,
                {operands.values, node.inputs[1], operands.scales},
                {{extension::quantised::run, operands.rows.values.run}},
                node.outputs,
                node.loc,
                {}};
    if (node.op != tosa::op::gather) {
      raised.op = extension::op::scaled_product;
      raised.inputs = {node.inputs[0], operands.values, node.inputs[2], operands.scales};
      raised.attrs.set(extension::quantised::by_columns, r.by_columns);
      read_quantised_rows(raised, operands.rows);
    }
    if (extension::verify_node(tosa::View(graph_, raised))) return {};  // of a dtype that the operator has not
    node = std::move(raised);
    changed_ = true;
    return {};
  }

  // The product then multiplies the quantised values of its activations, too.
  void read_quantised_rows(Node& product, const QuantisedRows& rows) const {
    if (rows.group % 4 != 0 || rows.group > longest_sum) return;
    const auto found = find_per_row_quantisation(graph_, uses_.producer, product.inputs[0], rows.k);
    if (!found || (executor_.whole_zeros && found->zero != no_value && !is_cast_of_i8(found->zero))) return;
    product.inputs[extension::scaled_product::input] = found->quantised;
    for (ValueId v : {found->scale, found->zero})
      if (v != no_value) product.inputs.push_back(v);
  }
  bool is_cast_of_i8(ValueId v) const {
    const Node* cast = maker(skip_views(v));
    return cast && cast->op == tosa::op::cast && graph_[cast->inputs[0]].type.dtype == DType::i8;
  }

  // nullopt: it stays floats.
  Result<std::optional<Operands>> operands_of(ValueId root, ValueId weight, const Reading& r) {
    TOSAIC_TRY(auto found,
               quantised_operands(graph_, uses_.producer, fixed_, weight, r.rows, r.by_columns, executor_.takes_rows));
    if (!found) return std::optional<Operands>();
    Operands made{no_value, no_value, std::move(found->rows)};
    const std::string& name = graph_[root].name;
    const std::int64_t n = made.rows.n, k = made.rows.k, per_byte = made.rows.values.run == 0 ? 1 : 2;
    const Shape shape = made.rows.by_columns ? Shape{k, n / per_byte} : Shape{n, k / per_byte};
    made.values = graph_.add_value(name + ".values", {DType::i8, shape, {}}, made.rows.values.bytes);
    made.scales = graph_.add_value(name + ".scales", std::move(found->of_scales), std::move(found->scales));
    return std::optional(std::move(made));
  }

  Status compute_operands(const Node& node) {
    const tosa::Op* op = tosa::find(node.op);
    if (!executor_.all_constants && node.op != tosa::op::gather && !(op && op->accumulates)) return {};
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == no_value || graph_[v].is_constant() || !fixed_[v]) continue;
      if (!executor_.all_constants && i != (node.op == tosa::op::gather ? 0 : 1)) continue;
      TOSAIC_TRY(Bytes content, fixed_.content(v));
      if (content.null()) continue;
      graph_[v].constant = std::move(content);
      changed_ = true;
    }
    return {};
  }

  // What has an effect stays, and what somebody may see.
  void drop_unread() {
    const std::vector<ValueId> outputs = graph_.outputs;
    for (ValueId v = 0; v < uses_.visible.size(); ++v)
      if (uses_.visible[v]) graph_.outputs.push_back(v);
    for (const Node& node : graph_.nodes)
      if (!node.regions.empty() || tosa::is_variable(node.op) || node.op == tosa::op::custom)
        graph_.outputs.insert(graph_.outputs.end(), node.outputs.begin(), node.outputs.end());
    drop_dead_nodes(graph_);
    graph_.outputs = outputs;
  }

  Graph& graph_;
  const Raising& executor_;
  const Uses uses_;  // of the graph as it was: nodes stay in their places until the end
  const FixedValues fixed_;
  // By what views show, its rows, and whether these are columns. nullopt: it stays floats.
  std::map<std::tuple<ValueId, std::int64_t, bool>, std::optional<Operands>> known_;
  bool changed_ = false;
};

}  // namespace

Result<bool> raise_quantised(Graph& graph, const Raising& executor, std::span<const ValueId> observed) {
  return Raise(graph, executor, observed).run();
}

}  // namespace tosaic::plan
