// SPDX-License-Identifier: Apache-2.0
#include "pack/core_form.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "kernels/out_variant.h"
#include "ops/core_form.h"
#include "ops/operator_name.h"
#include "ops/trial.h"
#include "ops/unknown_operator.h"
#include "pack/executorch_kernels.h"

namespace tosaic::packing {
namespace {

using Ints = std::vector<std::int64_t>;

// The TOSA operators that a node lowers to, and the one operand that they read; none where it does not lower, or they
// read several. (Which operand is read is not the position's to say: `copy` gives its second.)
struct Moved {
  std::vector<Node> nodes;
  std::size_t operand = 0;
};

std::optional<Moved> moved_operand(const CoreCall& r) {
  auto trial = try_node(r.graph, r.node, {.operand = [](std::size_t, TensorType&, Bytes& elements) { elements = {}; }});
  if (!trial.ok()) return std::nullopt;
  const std::vector<char> read = read_operands(*trial);
  if (std::count(read.begin(), read.end(), 1) != 1) return std::nullopt;
  const auto operand = static_cast<std::size_t>(std::find(read.begin(), read.end(), 1) - read.begin());
  return Moved{std::move(trial->graph.nodes), operand};
}

// What moves elements without looking at them is one of three kernels, whatever its name: the lowering tells which.
// Only reshapes: view_copy. One transpose: permute_copy. Repeats of dims of size 1: expand_copy.
std::optional<Node> movement(const CoreCall& r) {
  if (r.node.outputs.size() != 1) return std::nullopt;
  const std::optional<Moved> moved = moved_operand(r);
  if (!moved || moved->nodes.empty()) return std::nullopt;
  const std::vector<Node>& nodes = moved->nodes;
  const TensorType& in = r.in(moved->operand);
  if (in.dtype != r.out().dtype) return std::nullopt;
  const ValueId operand = r.operand(moved->operand);
  const Ints size = r.out().shape.sizes();
  auto only = [&](std::initializer_list<Operator> allowed) {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const Node& n) { return std::count(allowed.begin(), allowed.end(), n.op) > 0; });
  };
  if (only({tosa::op::reshape, tosa::op::identity})) {
    if (in.shape.elements() != r.out().shape.elements()) return std::nullopt;
    return r.call(aten::op::view_copy, {operand}, {{"size", size}});
  }
  if (nodes.size() == 1 && nodes[0].op == tosa::op::transpose)
    return r.call(aten::op::permute_copy, {operand}, {{"dims", nodes[0].attrs.get_or<Ints>("perms", {})}});
  if (!only({tosa::op::reshape, tosa::op::identity, tosa::op::tile}) || in.rank() > r.out().rank()) return std::nullopt;
  const int missing = r.out().rank() - in.rank();
  for (int d = 0; d < in.rank(); ++d)
    if (in.shape.size(d) != 1 && in.shape.size(d) != r.out().shape.size(d + missing)) return std::nullopt;
  return r.call(aten::op::expand_copy, {operand}, {{"size", size}});
}

}  // namespace

Result<Node> core_form(Graph& graph, const Node& node) {
  if (gives_scalar(node)) return node;
  const FoundOp found = find_aten(node.op);
  const bool custom =
      has_mark(node, mark::argument_order) &&
      (node.op.is_aten() ? executorch_call(node.op).has_value() : kernels::out_variant_by_name(node.op).has_value());
  if (!found.op && !custom) {
    if (Diagnostic why = unknown_operator(node.op); why.code != "aten.unknown-operator")
      return located(std::move(why), node.loc);
    return located(
        error("pack.unknown-operator",
              fmt::format("{} stays outside the delegate, and no kernel is known for it", node.op))
            .hint(has_mark(node, mark::undecomposed)
                      ? "write it in other operators, or define its lowering in Python: tosaic.lowering"
                      : "save the program after ep = ep.run_decompositions(), which writes most operators in "
                        "others, or compile it in Python, where tosaic.lowering defines what is left"),
        node.loc);
  }
  if (node.outputs.empty() || node.outputs[0] == no_value)
    return located(error("pack.no-kernel", fmt::format("{} stays outside the delegate, but has no result", node.op)),
                   node.loc);
  if (!found.op) return node;
  const CoreCall call{graph, node, *found.schema};
  std::size_t operand = 0;
  for (const SchemaArgument& a : found.schema->arguments) {  // a number in a tensor's place: no form looks for that
    if (a.is_tensor_list()) break;
    if (a.is_tensor() && !call.given(operand++) && !a.is_optional()) return node;
  }
  if (auto own = found.op->core ? found.op->core(call) : std::nullopt) return *std::move(own);
  if (auto moves = movement(call)) return *std::move(moves);
  return node;
}

}  // namespace tosaic::packing
