// SPDX-License-Identifier: Apache-2.0
#include "normalise/out_form.h"

#include <fmt/format.h>
#include <string>
#include <vector>

#include "ir/marks.h"
#include "ops/op.h"
#include "ops/operator_name.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// add.out computes add.Tensor, maximum.out maximum.default, pow.Scalar_out pow.Scalar.
std::vector<Operator> computed_by(Operator op) {
  const std::string stem = fmt::format("{}.{}.", op.space(), op.base());
  if (op.overload() == "out") return {Operator(stem + "default"), Operator(stem + "Tensor")};
  return {
      Operator(stem + std::string(op.overload().substr(0, op.overload().size() - std::string_view("_out").size())))};
}

// The names of the tensors that the node is given, by mark::argument_order.
std::vector<std::string> tensors_of(const Node& node) {
  std::vector<std::string> names;
  constexpr std::string_view tensor = "Tensor? ";
  if (const auto* order = find_mark(node, mark::argument_order))
    for (const std::string& argument : *order)
      if (argument.starts_with(tensor)) names.push_back(argument.substr(tensor.size()));
  return names;
}

std::vector<std::string> tensors_of(const Schema& schema) {
  std::vector<std::string> names;
  for (const SchemaArgument& a : schema.arguments)
    if (a.is_tensor()) names.push_back(a.name);
  return names;
}

}  // namespace

std::optional<Node> without_out(const Graph& graph, const Node& node) {
  if (!name_says_out(node.op)) return std::nullopt;
  std::vector<std::string> given = tensors_of(node);
  if (given.empty() || given.back() != "out" || given.size() != node.inputs.size()) return std::nullopt;
  const ValueId target = node.inputs.back();
  if (target == no_value) return std::nullopt;
  given.pop_back();
  for (const Operator op : computed_by(node.op)) {
    const FoundOp found = find_aten(op);
    if (!found.op || tensors_of(*found.schema) != given) continue;
    Node pure = node;
    pure.op = op;
    pure.inputs.pop_back();
    pure.attrs = {};
    for (const auto& [name, value] : node.attrs)
      if (found.schema->argument(name)) pure.attrs.set(name, value);
    const auto trial = try_node(graph, undeclared(pure));
    if (trial.ok() && trial->results.size() == 1 && trial->graph[trial->results[0]].type == graph[target].type)
      return pure;
  }
  return std::nullopt;
}

}  // namespace tosaic
