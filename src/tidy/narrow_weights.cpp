// SPDX-License-Identifier: Apache-2.0
// The weights of a convolution whose quantised values all fit TOSA's int4_t, which has no -8, become that: half the
// bytes in the file, the same results.
#include <algorithm>
#include <map>

#include "ops/definitions/tosa_op.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

bool fits(const Value& v) {
  if (!v.is_constant() || v.type.dtype != DType::i8) return false;
  constexpr IntegerRange four_bits = range_of(DType::i4);
  const auto quantised = v.constant.as<std::int8_t>();
  return std::all_of(quantised.begin(), quantised.end(),
                     [&](std::int8_t c) { return c >= four_bits.lowest && c <= four_bits.highest; });
}

// The operands that have the weight's type: it and its zero point. Empty: the operator has no weight.
std::vector<std::size_t> typed_as_weight(const tosa::Op& op) {
  const auto weight = std::ranges::find(op.inputs, "weight", &tosa::Operand::name);
  std::vector<std::size_t> found;
  if (weight == op.inputs.end()) return found;
  for (std::size_t i = 0; i < op.inputs.size(); ++i)
    if (op.inputs[i].type == weight->type) found.push_back(i);
  return found;
}

}  // namespace

void narrow_weights(Graph& graph, const tosa::Spec& spec) {
  if (!spec.has(tosa::Feature::int4)) return;
  std::map<ValueId, ValueId> narrowed;
  for (Node& node : graph.nodes) {
    const tosa::Op* op = tosa::find(node.op);
    const std::vector<std::size_t> operands = op ? typed_as_weight(*op) : std::vector<std::size_t>();
    if (operands.empty() || !std::ranges::all_of(operands, [&](std::size_t i) { return fits(graph[node.inputs[i]]); }))
      continue;
    Node narrow = node;
    for (const std::size_t i : operands) {
      ValueId& v = narrow.inputs[i];
      const auto [it, fresh] = narrowed.try_emplace(v, no_value);
      if (fresh) {
        const Value wide = graph[v];
        it->second = graph.add_value(wide.name + ".i4", wide.type.with(DType::i4), wide.constant);
      }
      v = it->second;
    }
    if (!tosa::verify_node(tosa::View(graph, narrow), spec)) node = std::move(narrow);
  }
  drop_dead(graph);
}

}  // namespace tosaic
