// SPDX-License-Identifier: Apache-2.0
#include "kernels/out_variant.h"

#include "ops/operator_name.h"

namespace tosaic::kernels {
namespace {

bool is_factory(const Schema& schema) { return schema.argument("layout") && schema.argument("device"); }

// "permute" -> "permute_copy" where PyTorch has that.
std::string kernel_name(const Schema& schema) {
  const std::string copy = schema.name + "_copy";
  return find_aten(Operator(schema.ns + "." + copy + "." + schema.overload)).op ? copy : schema.name;
}

// PyTorch's rule: overload X has the out-variant X_out, the default overload has "out".
std::string by_rule(std::string_view overload) {
  return overload == "default" ? "out" : std::string(overload) + "_out";
}

std::string overload_of(const AtenOp* op, const Schema& schema) {
  const std::string name = schema.name + "." + schema.overload;
  if (op)
    for (const auto& [functional, out] : op->out_overloads)
      if (functional == name) return std::string(out);
  return by_rule(schema.overload);
}

}  // namespace

pte::OperatorName out_variant(const Schema& schema) {
  const std::string name = kernel_name(schema);
  return {schema.ns + "::" + name, overload_of(find_aten(Operator(schema.full_name())).op, schema)};
}

std::optional<pte::OperatorName> out_variant_by_name(Operator op) {
  const std::string_view name = op.base();
  if (op.space().empty() || name.empty() || op.overload().empty() || op.is_control_flow()) return {};
  if (name.find('.') != std::string_view::npos || name_says_in_place(op)) return {};
  return pte::OperatorName{fmt::format("{}::{}", op.space(), name), by_rule(op.overload())};
}

bool kept_by_out_variant(const Schema& schema, const SchemaArgument& argument) {
  if (!is_factory(schema)) return true;
  return argument.name != "dtype" && argument.name != "layout" && argument.name != "device" &&
         argument.name != "pin_memory";
}

bool gives_list(const Schema& schema) { return schema.returns.size() == 1 && schema.returns[0].ends_with("[]"); }

std::size_t trailing_arguments(const Schema& schema) { return schema.returns.size() + 1; }

namespace {

std::size_t count_of_arguments(const Schema& schema) {
  std::size_t count = trailing_arguments(schema);
  for (const SchemaArgument& a : schema.arguments) count += kept_by_out_variant(schema, a);
  return count;
}

// TOSA's rows as calls are in no list (ops/row_calls.h); their names follow the rule.
std::optional<FoundOp> row_call(const pte::OperatorName& kernel, std::size_t arguments) {
  const auto colons = kernel.name.find("::");
  const std::string op = kernel.name.substr(0, colons) + "." + kernel.name.substr(colons + 2) + ".";
  for (std::string_view overload : {"default", "integer"}) {
    if (by_rule(overload) != kernel.overload) continue;
    const FoundOp found = find_aten(Operator(op + std::string(overload)));
    if (found.op && count_of_arguments(*found.schema) == arguments) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<FoundOp> functional(const pte::OperatorName& kernel, std::size_t arguments) {
  if (kernel.name.find("::") == std::string::npos) return std::nullopt;
  for (const NamedAtenOp& named : all_aten())
    for (std::string_view text : named.op.schemas) {
      const auto bare = kernel.name.substr(kernel.name.find("::") + 2);
      if (text.find(bare) == std::string_view::npos) continue;  // cheap first: most texts are other operators'
      const auto parsed = parse_schema(text);
      if (!parsed.ok() || parsed->ns + "::" + parsed->name != kernel.name) continue;
      if (parsed->in_place || overload_of(&named.op, *parsed) != kernel.overload) continue;
      if (count_of_arguments(*parsed) == arguments) return find_aten(Operator(parsed->full_name()));
    }
  return row_call(kernel, arguments);
}

}  // namespace tosaic::kernels
