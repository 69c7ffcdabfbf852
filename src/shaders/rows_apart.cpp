// SPDX-License-Identifier: Apache-2.0
#include "shaders/rows_apart.h"

#include <algorithm>

#include "ir/tosa_operators.h"
#include "plan/movement.h"
#include "plan/views.h"
#include "shaders/product.h"
#include "shaders/row_product.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

// Of which the device's cache holds several: reading them again for each row takes less than waiting for all rows.
constexpr std::size_t most_weight_bytes = std::size_t{4} << 20;

// The operands of a CONCAT that joins rows of so many elements, in their order.
std::optional<std::vector<ValueId>> joined_rows(const plan::Uses& uses, ValueId v, std::int64_t row) {
  const Graph& graph = uses.graph;
  const Node* node = plan::maker(graph, uses.producer, plan::skip_views(graph, uses.producer, v));
  if (!node || node->op != tosa::op::concat || !uses.type(node->outputs[0]).shape.is_static()) return std::nullopt;
  const auto movement = plan::movement_of(graph, *node);
  if (!movement) return std::nullopt;
  std::vector<ValueId> rows;
  for (const plan::Move& move : movement->moves) {
    const bool is_next = move.is_dense_part() && move.write.offset == std::ssize(rows) * row;
    if (!is_next || uses.type(move.from).shape.elements() != row || uses.constant(move.from)) return std::nullopt;
    rows.push_back(move.from);
  }
  return rows;
}

bool is_ordered(const std::vector<std::uint32_t>& depths, const std::vector<ValueId>& rows) {
  const auto deeper = [&](ValueId a, ValueId b) { return depths[a] >= depths[b]; };
  const auto shallower = [&](ValueId a, ValueId b) { return depths[a] <= depths[b]; };
  return std::ranges::adjacent_find(rows, deeper) == rows.end() ||
         std::ranges::adjacent_find(rows, shallower) == rows.end();
}

// Nodes that take one row each of the value or its views; false: somebody reads it otherwise.
bool add_slices(const plan::Uses& uses, ValueId v, std::int64_t row, const std::vector<ValueId>& inputs,
                std::vector<RowsApart::Row>& found) {
  return !uses.visible[v] && std::ranges::all_of(uses.users[v], [&](std::uint32_t u) {
    const Node& node = uses.node(u);
    if (plan::is_view(node)) return add_slices(uses, node.outputs[0], row, inputs, found);
    const auto movement = node.op == tosa::op::slice ? plan::movement_of(uses.graph, node) : std::nullopt;
    if (!movement || movement->moves.size() != 1) return false;
    const plan::Move& move = movement->moves[0];
    const std::int64_t first = move.read.offset;
    if (!move.is_run() || uses.type(node.outputs[0]).shape.elements() != row || first % row != 0) return false;
    found.push_back({inputs[static_cast<std::size_t>(first / row)], u, first});
    return true;
  });
}

}  // namespace

std::vector<std::uint32_t> depths_of(const Graph& graph) {
  std::vector<std::uint32_t> depths(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    std::uint32_t depth = 0;
    for (ValueId v : node.inputs)
      if (v != no_value) depth = std::max(depth, depths[v]);
    for (ValueId v : node.outputs) depths[v] = depth + 1;
  }
  return depths;
}

std::optional<RowsApart> find_rows_apart(const plan::Uses& uses, const std::vector<std::uint32_t>& depths,
                                         const std::function<bool(std::uint32_t node)>& can_finish, std::uint32_t n) {
  const tosa::View view(uses.graph, uses.node(n));
  if (view.node().op != tosa::op::conv2d || !view.out().shape.is_static() || !has_tiles(view) || !is_plain(view))
    return std::nullopt;
  const std::int64_t columns = view.in(1).shape.size(0), channels = view.in(0).shape.size(3);
  if (channels < row_product::shortest || columns == 0 || view.constant(1).size() > most_weight_bytes)
    return std::nullopt;
  const auto inputs = joined_rows(uses, view.node().inputs[0], channels);
  if (!inputs || std::ssize(*inputs) != rows_of_product(view).value() || inputs->size() < 2 ||
      !is_ordered(depths, *inputs))
    return std::nullopt;
  RowsApart found;
  ValueId v = skip_views(uses, view.node().outputs[0]);
  const auto is_alike = [&](const Shape& shape) {
    return shape.is_static() && shape.elements() == view.out().shape.elements() && shape.rank() > 0 &&
           shape.size(shape.rank() - 1) == columns;
  };
  if (!is_alike(uses.type(v).shape)) v = view.node().outputs[0];
  found.root = v;
  for (auto user = uses.only_user(v); user && can_finish(*user); user = uses.only_user(v)) {
    if (!uses.only_first_computed(uses.node(*user)) || uses.node(*user).outputs.size() != 1) return std::nullopt;
    found.epilogue.push_back(*user);
    v = uses.node(*user).outputs[0];
    if (!is_alike(uses.type(v).shape)) return std::nullopt;
  }
  if (!add_slices(uses, v, columns, *inputs, found.rows) || found.rows.empty()) return std::nullopt;
  return found;
}

std::optional<std::vector<MadeList>> make_rows_apart(const Work& work, const Node& node, const RowsApart& apart) {
  std::optional<plan::Expression> epilogue;
  if (!apart.epilogue.empty()) epilogue = plan::expression_of(work.graph, apart.epilogue);
  std::vector<MadeList> made;
  for (const RowsApart::Row& row : apart.rows) {
    const Finish::RowApart own{row.input, work.graph.nodes[row.slice].outputs[0], row.first};
    made.push_back(make_row_product(work, node, Finish(apart.root, epilogue ? &*epilogue : nullptr, own)));
    if (!made.back()) return std::nullopt;
  }
  return made;
}

}  // namespace tosaic::shaders
