// SPDX-License-Identifier: Apache-2.0
#include "pack/executorch_kernels.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <set>

#include "execute/executable.h"
#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ir/rewriter.h"
#include "ir/specialise.h"
#include "kernels/out_variant.h"
#include "lower/lower.h"
#include "ops/operator_name.h"
#include "pack/core_form.h"
#include "pack/tosa_in_aten.h"
#include "runtime/kernel.h"
#include "runtime/picking_kernel.h"

namespace tosaic::packing {
namespace {

struct Registered {
  std::string_view name;
  std::string_view functional;  // the schema of the operator that it belongs to; empty outside ATen
};
constexpr auto kernels = std::to_array<Registered>({
#include "pack/executorch_kernels.inc"
});

std::string call_name(const pte::OperatorName& kernel) {
  return kernel.overload.empty() ? kernel.name : kernel.name + "." + kernel.overload;
}

std::vector<Symbol> symbols_of_arguments(const Node& node) {
  std::vector<Symbol> found;
  const auto add = [&](const SymbolicArgument& a) {
    if (a.size)
      for (Symbol& symbol : a.size->symbols()) found.push_back(std::move(symbol));
  };
  for (const auto& [name, attr] : node.attrs) {
    if (const auto* one = std::get_if<SymbolicArgument>(&attr)) add(*one);
    if (const auto* list = std::get_if<std::vector<SymbolicArgument>>(&attr)) std::ranges::for_each(*list, add);
  }
  return found;
}

// Why `tosaic run` cannot run the call; nothing when it can. No Trial: this is the graph of one call that its kernel
// will be compiled from (kernels/lowered_kernel.cpp), of its largest size where that depends on values.
Status runs_here(const Graph& graph, const Node& node, const std::vector<char>& used) {
  const auto empty = [&](ValueId v) { return v == no_value || graph[v].type.shape.is_empty(); };
  const pte::OperatorName kernel = kernels::out_variant(*find_aten(node.op).schema);
  std::vector<std::optional<DType>> dtypes;
  for (ValueId v : node.inputs) dtypes.push_back(v == no_value ? std::nullopt : std::optional(graph[v].type.dtype));
  if (runtime::copies(kernel) || runtime::picks_by_value(kernel, dtypes) ||
      std::all_of(node.outputs.begin(), node.outputs.end(), empty))
    return {};
  Graph one;
  Node copy = node;
  for (ValueId& v : copy.inputs) {
    if (v == no_value) continue;
    v = one.add_value("in" + std::to_string(one.values.size()), graph[v].type, graph[v].constant);
    if (!one[v].is_constant()) one.inputs.push_back(v);
  }
  for (std::size_t i = 0; i < copy.outputs.size(); ++i) {
    ValueId& v = copy.outputs[i];
    // Results that nobody reads, and those that the core form adds, are for the kernel's sake only.
    if (v == no_value) continue;
    const bool wanted = v < used.size() && used[v];
    v = one.add_value("out" + std::to_string(one.values.size()), graph[v].type);
    if (wanted) one.outputs.push_back(v);
  }
  one.nodes = {std::move(copy)};
  // What depends on values is judged at its largest.
  std::vector<Symbol> symbols = input_symbols(one);
  for (Symbol& symbol : symbols_of_arguments(node))
    if (std::ranges::find(symbols, symbol) == symbols.end()) symbols.push_back(std::move(symbol));
  TOSAIC_TRY(const Sizes sizes, largest_sizes(symbols));
  TOSAIC_CHECK(replace_symbols(one, sizes));
  TOSAIC_TRY(const Lowered lowered, lower(one, {.fold = false}));
  return execute::Executable::check_lowering(lowered.graph);
}

// ExecuTorch's kernel takes less than its operator: it cannot cut off.
bool cuts_off(const Node& node) {
  const auto pads = node.attrs.get_or<std::vector<std::int64_t>>("pad", {});
  return node.op == aten::op::constant_pad_nd && std::any_of(pads.begin(), pads.end(), [](auto p) { return p < 0; });
}

// Its remainder of integers has the dividend's sign, as in C: -2 for -5 % 3.
bool has_wrong_sign(const Graph& graph, const Node& node) {
  return node.op.overload_of(aten::op::remainder_Tensor) && is_integer(graph[node.outputs[0]].type.dtype);
}

bool has_kernel(const Node& node) {
  const FoundOp found = find_aten(node.op);
  return found.op && executorch_has(kernels::out_variant(*found.schema)) && !cuts_off(node);
}

}  // namespace

bool executorch_has(const pte::OperatorName& kernel) {
  const std::string name = call_name(kernel);
  return std::any_of(kernels.begin(), kernels.end(), [&](const Registered& k) { return k.name == name; });
}

std::optional<ExecutorchCall> executorch_call(Operator op) {
  if (!op.is_aten()) return std::nullopt;
  for (const Registered& k : kernels) {
    if (!k.functional.starts_with(op.base())) continue;  // cheap first: most texts are other operators'
    auto schema = parse_schema(k.functional);
    if (!schema.ok() || schema->full_name() != op.name()) continue;
    const auto dot = k.name.find('.');
    return ExecutorchCall{{std::string(k.name.substr(0, dot)), std::string(k.name.substr(dot + 1))},
                          *std::move(schema)};
  }
  return std::nullopt;
}

Status use_executorch_kernels(Graph& graph, const std::function<void(Diagnostic)>& sink) {
  const std::vector<char> used = used_values(graph);
  Rewriter out(graph);
  std::set<std::string> said;
  std::string theirs, ours;
  const auto only_theirs = [&](const Node& node, const std::string& why) {
    theirs = node.op.text();
    if (!sink || !said.insert(node.op.text()).second) return;
    sink(located(warning("pack.executorch-only",
                         fmt::format("{} stays outside the delegate, and `tosaic run` cannot run it: {}", node.op, why))
                     .hint("run the program with ExecuTorch"),
                 node.loc));
  };
  for (Node& node : out.nodes()) {
    for (Graph& body : node.regions) TOSAIC_CHECK(use_executorch_kernels(body, sink));
    if (node.op == op::delegate || !node.regions.empty()) {
      out.keep(std::move(node));
      continue;
    }
    TOSAIC_TRY(Node form, core_form(graph, node));
    if (!find_aten(node.op).op || gives_scalar(node)) {
      if (!gives_scalar(node) && executorch_call(node.op)) only_theirs(node, "tosaic does not know it");
      out.keep(std::move(form));
      continue;
    }
    const Status here = runs_here(graph, node, used);
    if (has_kernel(form) && !has_wrong_sign(graph, form)) {
      if (!here.ok()) only_theirs(node, here.error().message);
      out.keep(std::move(form));
      continue;
    }
    if (!here.ok())
      return located(
          error("pack.no-kernel", fmt::format("{} stays outside the delegate, ExecuTorch has no kernel of it, "
                                              "and neither has tosaic: {}",
                                              node.op, here.error().message))
              .hint(here.error().help.empty() ? "write it in other operators" : here.error().help),
          node.loc);
    auto decomposition = tosa_in_aten(graph, node, used);
    if (decomposition && std::all_of(decomposition->begin(), decomposition->end(), has_kernel)) {
      for (Node& decomposed_node : *decomposition) out.keep(std::move(decomposed_node));
      continue;
    }
    const std::string kernel = call_name(kernels::out_variant(*find_aten(form.op).schema));
    ours = node.op.text();
    if (sink && said.insert(kernel).second)
      sink(
          located(warning("pack.tosaic-only", fmt::format("{} stays outside the delegate, and ExecuTorch has no kernel "
                                                          "{}: the program runs in tosaic only",
                                                          node.op, kernel))
                      .hint("write it in other operators, or compile for a target that takes it"),
                  node.loc));
    out.keep(std::move(form));
  }
  if (!theirs.empty() && !ours.empty())
    return error("pack.no-kernel", fmt::format("{} runs in ExecuTorch only, and {} in tosaic only: the program would "
                                               "run nowhere",
                                               theirs, ours))
        .hint("save it after ep = ep.run_decompositions(), or write one of them in other operators");
  return {};
}

}  // namespace tosaic::packing
