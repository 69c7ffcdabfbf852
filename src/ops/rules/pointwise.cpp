// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/marks.h"
#include "ops/computed.h"
#include "ops/finer_table.h"
#include "ops/rules/in_integers.h"
#include "ops/rules/quantisation_rule.h"
#include "ops/rules/quantised_call.h"

namespace tosaic {
namespace {

// One table or two, or no table (quantise/function_forms.h), f being the operator's float lowering run on the
// representable inputs.
Vals lower(QuantisedCall& call) {
  Builder& b = call.b;
  Val x = call.operands.at(0).value();
  const Node node = call.undeclared();
  for (std::size_t i = 1; i < call.operands.size(); ++i)
    if (call.operands[i] && !call.operands[i]->is_constant())
      b.refuse("quantise.pointwise-operand", fmt::format("{} takes a computed tensor in addition to x", node.op));
  auto f = [&](const std::vector<double>& inputs) {
    const auto operand = [&](std::size_t i, TensorType& type, Bytes& elements) {
      const Value& given = b.graph()[node.inputs[i]];
      type = i == 0 ? TensorType{DType::f32, Shape{static_cast<std::int64_t>(inputs.size())}, {}} : given.type;
      elements = i == 0 ? Bytes() : given.constant;
    };
    auto trial = try_node(b.graph(), node, {.fold = true, .operand = operand});
    if (!trial.ok()) throw Refusal{std::move(trial.error())};
    auto values = computed_at(*trial, {inputs});
    if (!values.ok()) throw Refusal{std::move(values.error())};
    if (values->size() == 1) values->resize(inputs.size(), values->front());
    return std::move(*values);
  };
  const TensorType to = call.declared.at(0).with(x.shape());
  if (has_mark(call.node, mark::integers))
    if (const auto y = in_integers(call)) return *y;
  const std::int64_t* finer = find_mark(call.node, mark::finer);
  Val y = finer ? finer_table(b, x, to, f, static_cast<int>(*finer)) : b.table(x, to, f);
  return {b.reshape(y, call.declared[0].shape)};
}

}  // namespace

constinit const QuantisationRule Rule::pointwise{.name = "pointwise", .lower = lower, .tabulates = true};

}  // namespace tosaic
