// SPDX-License-Identifier: Apache-2.0
#include "pack/shared_states.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace tosaic {
namespace {

constexpr std::uint64_t alignment = 16;
constexpr std::uint32_t memory_of_states = 2;

bool only_zeros(const Bytes& content) {
  return std::ranges::all_of(std::span(content.data(), content.size()), [](std::byte b) { return b == std::byte{}; });
}

}  // namespace

void share_states(pte::Program& program) {
  std::map<std::string, std::uint64_t> offsets;
  std::uint64_t end = 0;
  const auto for_each_state = [&](auto&& what) {
    for (pte::Plan& plan : program.plans)
      for (pte::Value& value : plan.values)
        if (auto* tensor = std::get_if<pte::TensorValue>(&value); tensor && !tensor->state_name.empty()) what(*tensor);
  };
  for_each_state([&](pte::TensorValue& tensor) {
    const auto [known, fresh] = offsets.try_emplace(tensor.state_name, end);
    if (fresh) end += (tensor.constant.size() + alignment - 1) / alignment * alignment;
    tensor.planned = {memory_of_states, known->second};
    // The memory begins with zeros. What a method has for its buffers is put there when it is loaded, which may be
    // after another one has run.
    if (only_zeros(tensor.constant)) tensor.constant = {};
  });
  if (end == 0) return;
  for (pte::Plan& plan : program.plans) {
    plan.arena_sizes.resize(memory_of_states - 1, 0);
    plan.arena_sizes.push_back(static_cast<std::int64_t>(end));
  }
}

Status states_agree(const std::vector<MethodStates>& methods) {
  struct Known {
    const MethodStates* method;
    const State* state;
    const TensorType* type;
  };
  std::map<std::string, Known> known;
  for (const MethodStates& method : methods)
    for (const auto& [state, type] : method.states) {
      const auto [found, fresh] = known.try_emplace(state.name, Known{&method, &state, &type});
      if (fresh) continue;
      const auto& [other, first, first_type] = found->second;
      if (!(*first_type == type))
        return error("model.state",
                     fmt::format("'{}' is {} in method '{}' and {} in '{}', which keep it together", state.name,
                                 to_string(*first_type), other->method, to_string(type), method.method))
            .hint(
                "export all methods with buffers of the same sizes and dtypes; where they are quantised, compile for "
                "a float target, or each method into a file of its own");
      const bool zeros[] = {first->initial.null() || only_zeros(first->initial),
                            state.initial.null() || only_zeros(state.initial)};
      if (zeros[0] == zeros[1] && (zeros[0] || first->initial == state.initial)) continue;
      return error("model.state", fmt::format("'{}' begins with other content in method '{}' than in '{}'", state.name,
                                              method.method, other->method))
          .hint("export all methods from the same module, before any of them has run");
    }
  return {};
}

}  // namespace tosaic
