// SPDX-License-Identifier: Apache-2.0
#include "normalise/dynamic_slices.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"
#include "ops/lowering/calls.h"
#include "ops/op.h"
#include "ops/operator_name.h"

namespace tosaic {
namespace {

// Python's arithmetic on integers, as calls on tensors.
std::optional<Operator> on_tensors(Operator op) {
  constexpr std::pair<Operator, Operator> calls[] = {
      {python::op::add, aten::op::add_Tensor},       {python::op::sub, aten::op::sub_Tensor},
      {python::op::mul, aten::op::mul_Tensor},       {python::op::floordiv, aten::op::floor_divide},
      {python::op::mod, aten::op::remainder_Tensor},
  };
  const auto* it = std::ranges::find(calls, op, &std::pair<Operator, Operator>::first);
  return it == std::end(calls) ? std::nullopt : std::optional(it->second);
}

// The argument that says where a slice begins, or which row is meant.
const SchemaArgument* where(const Schema& schema) {
  if (!schema.argument("dim")) return nullptr;
  const SchemaArgument* start = schema.argument("start");
  return start ? start : schema.argument("index");
}

std::vector<ValueId> indices(const DynamicRows& rows) {
  std::vector<ValueId> all(static_cast<std::size_t>(rows.dim), no_value);
  all.push_back(rows.index_tensor);
  return all;
}

}  // namespace

DynamicSlices::DynamicSlices(Graph& graph)
    : graph_(graph), c_(graph, [&graph](Operator) { return fmt::format("place.{}", graph.values.size()); }) {
  c_.fold(false);
}

Val DynamicSlices::integers(const Shape& shape, const std::vector<std::int64_t>& elements) {
  return c_.value(graph_.add_value(fmt::format("place.{}", graph_.values.size()), {DType::i64, shape, std::nullopt},
                                   constant_bytes(DType::i64, elements)));
}

void DynamicSlices::learn(const Node& node) {
  if (node.outputs.size() != 1 || node.outputs[0] == no_value) return;
  c_.set_loc(node.loc);
  std::optional<Val> tensor;
  if (gives_scalar(node)) {
    tensor = c_.value(node.inputs[0]);
    if (!is_integer(tensor->dtype()) || tensor->type().quantised() || tensor->is_constant()) return;
    if (tensor->dtype() != DType::i64) tensor = c_.aten(aten::op::to_dtype, {tensor}, {{"dtype", DType::i64}});
    tensor = calls::view(*tensor, {});
  } else if (const auto op = tensors_.empty() ? std::nullopt : on_tensors(node.op)) {
    const bool named = node.attrs.find("a");
    const Attr *a = node.attrs.find(named ? "a" : "arg0"), *b = node.attrs.find(named ? "b" : "arg1");
    const auto is_learnt = [&](const Attr* x) {
      const auto* symbol = x ? std::get_if<SymbolicArgument>(x) : nullptr;
      return symbol && tensors_.contains(symbol->name);
    };
    if (!is_learnt(a) && !is_learnt(b)) return;
    const auto x = scalar(a), y = scalar(b);
    if (!x || !y) return;
    tensor = c_.aten(*op, {x, y});
  }
  if (tensor) tensors_.insert_or_assign(graph_[node.outputs[0]].name, *tensor);
}

std::optional<Val> DynamicSlices::scalar(const Attr* argument) {
  if (!argument) return std::nullopt;
  if (const auto* known = std::get_if<std::int64_t>(argument)) return integers({}, {*known});
  const auto* symbol = std::get_if<SymbolicArgument>(argument);
  const auto it = symbol ? tensors_.find(symbol->name) : tensors_.end();
  return it == tensors_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<DynamicRows> DynamicSlices::rows(const Node& node, const Schema& schema) {
  const SchemaArgument* argument = tensors_.empty() ? nullptr : where(schema);
  const Attr* start = argument ? node.attrs.find(argument->name) : nullptr;
  if (!start || !std::holds_alternative<SymbolicArgument>(*start) || node.outputs.size() != 1) return std::nullopt;
  c_.set_loc(node.loc);
  const auto first = scalar(start);
  // A slice has its dim's rows, a selection none; of a scatter the source does.
  const ValueId part = node.inputs.size() > 1 ? node.inputs[1] : node.outputs[0];
  const int rank = graph_[node.inputs[0]].type.rank();
  const std::int64_t step = node.attrs.get_or("step", std::int64_t{1});
  auto dim = node.attrs.get_or("dim", std::int64_t{0});
  if (dim < 0) dim += rank;
  if (!first || part == no_value || dim < 0 || dim >= rank || !graph_[part].type.shape.is_static()) return std::nullopt;
  DynamicRows rows{static_cast<int>(dim), first->id()};
  if (argument->name == "start") {
    std::vector<std::int64_t> steps(static_cast<std::size_t>(graph_[part].type.shape.size(rows.dim)));
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<std::int64_t>(i) * step;
    rows.index_tensor = calls::add(integers(Shape{static_cast<std::int64_t>(steps.size())}, steps), *first).id();
  }
  return rows;
}

Node DynamicSlices::look(const DynamicRows& rows, const Node& slice) const {
  std::vector<ValueId> inputs = indices(rows);
  inputs.insert(inputs.begin(), slice.inputs[0]);
  return {aten::op::index_Tensor, std::move(inputs), {}, slice.outputs, slice.loc, {}};
}

Node DynamicSlices::put(const DynamicRows& rows, const Node& scatter) const {
  std::vector<ValueId> inputs = indices(rows);
  inputs.insert(inputs.begin(), scatter.inputs[0]);
  inputs.push_back(scatter.inputs[1]);
  return {aten::op::index_put, std::move(inputs), {}, scatter.outputs, scatter.loc, {}};
}

ValueId DynamicSlices::put(const DynamicRows& rows, ValueId base, ValueId content, const LocRef& loc) {
  const ValueId whole =
      graph_.add_value(fmt::format("{}.{}", graph_[base].name, graph_.values.size()), graph_[base].type);
  graph_.nodes.push_back(put(rows, Node{{}, {base, content}, {}, {whole}, loc, {}}));
  return whole;
}

}  // namespace tosaic
