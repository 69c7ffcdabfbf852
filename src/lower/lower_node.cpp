// SPDX-License-Identifier: Apache-2.0
#include "lower/lower_node.h"

#include <fmt/format.h>
#include <algorithm>

#include "lower/control_flow.h"
#include "ops/builder_bounds.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {

Vals lower_node(Builder& b, const Node& node, std::vector<std::optional<Val>> operands,
                const std::vector<TensorType>& declared) {
  if (!node.regions.empty()) return lower_control_flow(b, node, operands, declared);
  FoundOp found = find_aten(node.op);
  if (!found.op) return lower_call(b, node.op, std::move(operands), node.attrs, declared);  // which refuses it
  QuantisedCall call{b, node, found, declared, std::move(operands)};
  bool in = std::any_of(call.operands.begin(), call.operands.end(), is_quantised);
  bool out = std::any_of(declared.begin(), declared.end(), [](const TensorType& t) { return t.quantised(); });
  if (node.op.is_conversion()) {  // real conversions: their operand's quantised values are plain integers
    for (auto& v : call.operands)
      if (is_quantised(v) && !v->is_constant()) v = b.relabelled(*v, v->type().with(std::optional<Scales>{}));
    return call.plain();
  }
  if (!in && !out) return call.plain();
  const std::size_t first_node = b.graph().nodes.size();
  Vals results = found.rule->lower(call);
  if (auto overflow = possible_overflow(b.graph(), first_node))
    b.refuse("quantise.overflow", fmt::format("in the integer form of {}, {}", node.op, overflow->what));
  return results;
}

}  // namespace tosaic
