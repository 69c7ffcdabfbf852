// SPDX-License-Identifier: Apache-2.0
#include "ops/composer.h"

#include <fmt/format.h>
#include <algorithm>

#include "ops/trial.h"

namespace tosaic {

std::vector<std::optional<Val>> Composer::values(std::span<const ValueId> operands) {
  std::vector<std::optional<Val>> given;
  for (ValueId v : operands) given.push_back(v == no_value ? std::nullopt : std::optional(value(v)));
  return given;
}

std::vector<Val> Composer::aten_all(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs) {
  Node node{op, {}, std::move(attrs), {}, loc(), {}};
  for (const auto& v : operands) node.inputs.push_back(v ? v->id() : no_value);
  auto trial = try_node(graph(), node, {.fold = folds()});
  if (!trial.ok()) throw Refusal{std::move(trial.error())};
  std::vector<Val> results;
  const auto made = [&](ValueId v) -> const Value& { return trial->graph[v]; };
  if (folds() && std::ranges::all_of(trial->results, [&](ValueId v) { return made(v).is_constant(); })) {
    for (ValueId v : trial->results) results.push_back(constant(made(v).type, made(v).constant));
    return results;
  }
  for (ValueId v : trial->results) {
    results.push_back(value(graph().add_value(names_ ? names_(op) : fresh_name(op.base()), made(v).type)));
    node.outputs.push_back(results.back().id());
  }
  graph().nodes.push_back(std::move(node));
  return results;
}

std::vector<Val> Composer::tosa_all(Operator op, std::vector<Val> operands, Attrs attrs, std::optional<DType> result) {
  if (!std::ranges::all_of(operands, &Val::is_constant))
    refuse("quantise.composite", fmt::format("a composite uses {} by itself, which has no rule of quantisation", op));
  return Builder::tosa_all(op, std::move(operands), std::move(attrs), result);
}

}  // namespace tosaic
