// SPDX-License-Identifier: Apache-2.0
#include "kernels/out_variant.h"

#include <array>

#include "ops/operator_name.h"

namespace tosaic::kernels {
namespace {

struct Exception {
  std::string_view functional, out;
};
// Where PyTorch departs from its own rule (overload X has the out-variant X_out, the default overload has "out").
// The first four are the only operators with an overload "Tensor" and a bare "out".
constexpr std::array<Exception, 27> exceptions{{
    {"add.Tensor", "out"},
    {"sub.Tensor", "out"},
    {"mul.Tensor", "out"},
    {"div.Tensor", "out"},
    {"div.Tensor_mode", "out_mode"},
    {"mean.dim", "out"},
    {"any.dim", "out"},
    {"all.dim", "out"},
    {"var.dim", "out"},
    {"std.dim", "out"},
    {"logsumexp.default", "out"},
    {"mean.default", "dtype_out"},
    {"any.default", "all_out"},
    {"all.default", "all_out"},
    {"max.default", "unary_out"},
    {"min.default", "unary_out"},
    {"max.dim", "dim_max"},
    {"min.dim", "dim_min"},
    {"median.dim", "dim_values"},
    {"topk.default", "values"},
    {"sort.default", "values"},
    {"sort.stable", "values_stable"},
    {"prod.dim_int", "int_out"},
    {"sum.dim_IntList", "IntList_out"},
    {"arange.start_step", "start_out"},
    {"where.self", "self_out"},
    {"mode.default", "values"},
}};

bool is_factory(const Schema& schema) { return schema.argument("layout") && schema.argument("device"); }

// "permute" -> "permute_copy" where PyTorch has that.
std::string kernel_name(const Schema& schema) {
  const std::string copy = schema.name + "_copy";
  return find_aten(schema.ns + "." + copy + "." + schema.overload).op ? copy : schema.name;
}

std::string overload_of(const std::string& name, const std::string& overload) {
  const std::string key = name + "." + overload;
  for (const Exception& e : exceptions)
    if (e.functional == key) return std::string(e.out);
  return overload == "default" ? "out" : overload + "_out";
}

}  // namespace

pte::OperatorName out_variant(const Schema& schema) {
  const std::string name = kernel_name(schema);
  return {schema.ns + "::" + name, overload_of(name, schema.overload)};
}

std::optional<pte::OperatorName> out_variant_by_name(std::string_view op) {
  const auto first = op.find('.'), last = op.rfind('.');
  if (first == std::string_view::npos || first == last || first == 0 || op.starts_with("higher_order.")) return {};
  const std::string name(op.substr(first + 1, last - first - 1)), overload(op.substr(last + 1));
  if (name.empty() || overload.empty() || name.find('.') != std::string::npos || name_says_in_place(op)) return {};
  return pte::OperatorName{std::string(op.substr(0, first)) + "::" + name, overload_of(name, overload)};
}

bool kept_by_out_variant(const Schema& schema, const SchemaArgument& argument) {
  if (!is_factory(schema)) return true;
  return argument.name != "dtype" && argument.name != "layout" && argument.name != "device" &&
         argument.name != "pin_memory";
}

bool gives_list(const Schema& schema) { return schema.returns.size() == 1 && schema.returns[0].ends_with("[]"); }

std::size_t trailing_arguments(const Schema& schema) { return schema.returns.size() + 1; }

std::optional<FoundOp> functional(const pte::OperatorName& kernel, std::size_t arguments) {
  if (kernel.name.find("::") == std::string::npos) return std::nullopt;
  for (const NamedAtenOp& named : all_aten())
    for (std::string_view text : named.op.schemas) {
      const auto bare = kernel.name.substr(kernel.name.find("::") + 2);
      if (text.find(bare) == std::string_view::npos) continue;  // cheap first: most texts are other operators'
      const auto parsed = parse_schema(text);
      if (!parsed.ok() || parsed->ns + "::" + parsed->name != kernel.name) continue;
      if (parsed->in_place || overload_of(parsed->name, parsed->overload) != kernel.overload) continue;
      std::size_t count = trailing_arguments(*parsed);
      for (const SchemaArgument& a : parsed->arguments) count += kept_by_out_variant(*parsed, a);
      if (count == arguments) return find_aten(parsed->full_name());
    }
  return std::nullopt;
}

}  // namespace tosaic::kernels
