// SPDX-License-Identifier: Apache-2.0
// include/tosaic/tosa.hpp
#include "tosaic/tosa.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "api/guard.h"
#include "api/program.h"
#include "ops/row_calls.h"
#include "ops/trial.h"
#include "ops/unknown_operator.h"

namespace tosaic {
namespace {

TosaOperand operand_of(const tosa::Operand& row) {
  return {std::string(row.name), std::string(row.type), row.list, row.constant};
}

TosaOperator operator_of(const AtenOp& call, const tosa::Op& row) {
  TosaOperator op{
      std::string(row.name), std::string(row.summary), {call.schemas.begin(), call.schemas.end()}, {}, {}, {}};
  for (const tosa::Operand& o : row.inputs) op.operands.push_back(operand_of(o));
  for (const tosa::Operand& o : row.outputs) op.results.push_back(operand_of(o));
  for (const tosa::TypeRow& types : row.types) op.types.emplace_back(types.types.begin(), types.types.end());
  return op;
}

Diagnostic wrong(const Schema& schema, std::string message) {
  return error("call.argument", fmt::format("{}: {}", schema.full_name(), message));
}

Result<Attr> attribute_of(const Schema& schema, const SchemaArgument& argument, const Literal& value) {
  if (!argument.type.starts_with("ScalarType")) return std::visit([](const auto& v) { return Attr(v); }, value);
  if (std::holds_alternative<std::monostate>(value)) return Attr();
  const auto* name = std::get_if<std::string>(&value);
  const auto dtype = name ? dtype_named(*name) : std::nullopt;
  if (!dtype) return wrong(schema, fmt::format("argument '{}' must be the name of a dtype", argument.name));
  return Attr(*dtype);
}

Result<std::vector<OwnedTensor>> evaluated(const std::string& overload, const std::vector<InputTensor>& operands,
                                           const std::vector<std::pair<std::string, Literal>>& arguments) {
  const Operator op(overload);
  const FoundOp found = find_aten(op);
  if (!found.op) return unknown_operator(op);
  Graph graph;
  Node call{op, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const InputTensor& given = operands[i];
    const TensorType type{given.dtype, Shape(given.sizes), {}};
    Bytes elements;
    if (given.data) {
      TOSAIC_TRY(const Tensor lent, borrowed(given, type, fmt::format("operand {}", i)));
      elements = lent.data;
    }
    call.inputs.push_back(graph.add_value(fmt::format("operand.{}", i), type, std::move(elements)));
  }
  for (const auto& [name, value] : arguments) {
    const SchemaArgument* argument = found.schema->argument(name);
    if (!argument) return wrong(*found.schema, fmt::format("it has no argument '{}'", name));
    TOSAIC_TRY(Attr attr, attribute_of(*found.schema, *argument, value));
    call.attrs.set(name, std::move(attr));
  }
  TOSAIC_TRY(const Trial trial, try_node(graph, call, {.fold = true}));
  std::vector<OwnedTensor> results;
  for (ValueId v : trial.results) {
    const Value& result = trial.graph[v];
    results.push_back({result.type.dtype, result.type.shape.sizes(), result.constant});
  }
  return results;
}

}  // namespace

Result<std::vector<TosaOperator>> tosa_operators() {
  return guarded("", [&]() -> Result<std::vector<TosaOperator>> {
    std::vector<TosaOperator> list;
    for (const AtenOp& call : row_calls()) {
      TOSAIC_TRY(const Schema schema, parse_schema(call.schemas[0]));
      list.push_back(operator_of(call, *tosa::find(schema.name)));
    }
    return list;
  });
}

Result<std::vector<OwnedTensor>> evaluate_call(const std::string& overload, const std::vector<InputTensor>& operands,
                                               const std::vector<std::pair<std::string, Literal>>& arguments) {
  return guarded("", [&] { return evaluated(overload, operands, arguments); });
}

}  // namespace tosaic
