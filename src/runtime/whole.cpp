// SPDX-License-Identifier: Apache-2.0
#include "runtime/whole.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace tosaic::runtime {
namespace {

Diagnostic damaged(const char* what) {
  return error("method.not-whole", fmt::format("the program is damaged: {}", what));
}

// In how many places of the instructions each value stands.
std::map<std::int32_t, int> count_uses_of_values(const pte::Plan& plan) {
  std::map<std::int32_t, int> uses;
  const auto meet = [&](std::int32_t i) {
    ++uses[i];
    if (const auto* list = i < 0 ? nullptr : std::get_if<pte::TensorList>(&plan.values[static_cast<std::size_t>(i)]))
      for (std::int32_t item : list->items) ++uses[item];
  };
  for (const pte::Instruction& instruction : plan.instructions) {
    if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) std::ranges::for_each(call->args, meet);
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) std::ranges::for_each(call->args, meet);
    if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) meet(move->from), meet(move->to);
  }
  return uses;
}

// Constant, or what the program keeps from run to run.
bool has_content(const pte::Value& value) {
  const auto* tensor = std::get_if<pte::TensorValue>(&value);
  return !tensor || !tensor->constant.null() || !tensor->state_name.empty() || !tensor->external_name.empty();
}

}  // namespace

Status check_whole(const pte::Plan& plan, const std::function<std::size_t(std::size_t)>& inputs_of) {
  if (plan.outputs.empty()) return damaged("the method has no outputs");
  if (!plan.inputs.empty()) return {};
  const std::map<std::int32_t, int> uses = count_uses_of_values(plan);
  for (const pte::Instruction& instruction : plan.instructions) {
    const auto* call = std::get_if<pte::DelegateCall>(&instruction);
    if (!call) continue;
    const std::size_t read = std::min(inputs_of(static_cast<std::size_t>(call->delegate)), call->args.size());
    for (std::size_t k = 0; k < read; ++k)
      if (!has_content(plan.values[static_cast<std::size_t>(call->args[k])]) && uses.at(call->args[k]) == 1)
        return damaged("a delegate reads what nothing gives it, and the method has no inputs");
  }
  return {};
}

}  // namespace tosaic::runtime
