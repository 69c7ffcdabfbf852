// SPDX-License-Identifier: Apache-2.0
// identity, layout operators that hand back their operand as it is, and products with one, RESCALE's among them.
#include <cstdlib>

#include "ir/rewriter.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

bool is_all(const Value& value, double wanted) {
  if (!value.is_constant()) return false;
  for (std::int64_t i = 0; i < value.type.shape.elements(); ++i)
    if (element_as_double(value.type.dtype, value.constant.data(), static_cast<std::size_t>(i)) != wanted) return false;
  return true;
}

// The same integers: each is multiplied by about 2^n and shifted back by n, between equal zero points, so that none is
// half a step off.
bool is_identical_rescale(const Graph& graph, const Node& node) {
  const tosa::View view(graph, node);
  const auto multiplier = view.constant_integers(1), shift = view.constant_integers(2),
             from = view.constant_integers(3), to = view.constant_integers(4);
  if (!multiplier || !shift || !from || *from != to) return false;
  // Further from its zero point no integer is; of what is wider, the multiplier must be exact.
  const int bits = static_cast<int>(8 * storage_size(view.in(0).dtype));
  const bool is_narrow = bits <= 16 && view.text("rounding_mode") != "inexact_round";
  for (std::size_t i = 0; i < shift->size(); ++i) {
    const std::int64_t one = std::int64_t{1} << (*shift)[i], off = std::abs((*multiplier)[i] - one);
    if (off != 0 && !(is_narrow && off << bits < one / 2)) return false;
  }
  return view.flag("input_unsigned") == view.flag("output_unsigned");
}

bool is_identity(const Graph& graph, const Node& node) {
  if (node.op == tosa::op::identity) return true;
  const tosa::Op* op = tosa::find(node.op);
  if (!op || node.outputs.size() != 1) return false;
  const TensorType &in = graph[node.inputs[0]].type, &out = graph[node.outputs[0]].type;
  if (in.shape != out.shape || in.dtype != out.dtype) return false;
  if (node.op == tosa::op::mul)
    return is_all(graph[node.inputs[1]], 1) && (is_float(in.dtype) || is_all(graph[node.inputs[2]], 0));
  if (node.op == tosa::op::rescale) return is_identical_rescale(graph, node);
  if (node.op == tosa::op::concat) return node.inputs.size() == 1;
  if (node.op == tosa::op::transpose) {
    const auto& perms = node.attrs.get<std::vector<std::int64_t>>("perms");
    for (std::size_t i = 0; i < perms.size(); ++i)
      if (perms[i] != static_cast<std::int64_t>(i)) return false;
    return true;
  }
  // What keeps the shape moves nothing, but for reverse.
  return node.op == tosa::op::cast || (op->moves >= tosa::Moves::some && node.op != tosa::op::reverse);
}

}  // namespace

bool drop_identity(Graph& graph) {
  std::vector<char> is_input(graph.values.size(), 0), is_output(graph.values.size(), 0);
  for (ValueId v : graph.inputs) is_input[v] = 1;
  for (ValueId v : graph.outputs) is_output[v] = 1;
  Rewriter out(graph);
  out.each([&](Node& node) {
    if (node.inputs.empty() || !is_identity(graph, node)) return out.keep(std::move(node));
    ValueId from = node.outputs[0], to = node.inputs[0];
    // An output that is an input or a constant keeps its node: artifacts want it computed.
    // So does one whose integers stand for something else than the operand's.
    const bool is_another =
        is_input[to] || is_output[to] || graph[to].is_constant() || graph[from].type.scales != graph[to].type.scales;
    if (is_output[from] && is_another) return out.keep(std::move(node));
    if (is_output[from]) {
      graph[to].name = graph[from].name;
      graph[from].name += ".identity";
      is_output[to] = 1;
    }
    out.replace(from, to);
  });
  if (out.replaced()) drop_dead(graph);
  return out.replaced();
}

}  // namespace tosaic
