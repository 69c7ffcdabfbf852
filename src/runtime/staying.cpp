// SPDX-License-Identifier: Apache-2.0
#include "runtime/staying.h"

#include <algorithm>

#include "contract/tensors.h"
#include "runtime/method_impl.h"
#include "runtime/value_uses.h"

namespace tosaic::runtime {
namespace {

// How often a method mentions each of its values.
std::vector<int> mentions_in(const pte::Plan& plan) {
  std::vector<int> mentions(plan.values.size(), 0);
  const auto add = [&](const std::vector<std::int32_t>& list) {
    for (std::int32_t i : list)
      if (i >= 0) ++mentions[at(i)];
  };
  add(plan.inputs);
  add(plan.outputs);
  for (const pte::Value& value : plan.values) {
    if (const auto* list = std::get_if<pte::IntList>(&value)) add(list->items);
    if (const auto* list = std::get_if<pte::TensorList>(&value)) add(list->items);
  }
  for (const pte::Instruction& instruction : plan.instructions) {
    if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction)) add(kernel->args);
    if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) add(call->args);
    if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) add({move->from, move->to});
    if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) add({jump->condition});
  }
  return mentions;
}

bool is_called_once(std::int32_t delegate, const pte::Plan& plan) {
  return std::ranges::count_if(plan.instructions, [&](const pte::Instruction& instruction) {
           const auto* call = std::get_if<pte::DelegateCall>(&instruction);
           return call && call->delegate == delegate;
         }) == 1;
}

bool is_fixed_buffer(const pte::Value& value, const TensorCell& cell) {
  const auto* tensor = std::get_if<pte::TensorValue>(&value);
  return tensor && tensor->is_planned && !tensor->state_name.empty() && !cell.constant && !cell.varies &&
         cell.dim_order.empty() && cell.type.storage_bytes() > 0;
}

bool is_alone(const Cell& which, const Cells& cells) {
  return std::ranges::none_of(cells, [&](const Cell& other) {
    return &other != &which && other.is_tensor && share_memory(other.tensor, which.tensor);
  });
}

bool may_stay(const tosaic_delegate_tensor_info& output) { return (output.flags & TOSAIC_TENSOR_STAYS) != 0; }

}  // namespace

StayingArguments staying_arguments(const pte::DelegateCall& call, const pte::Plan& plan, const Cells& cells,
                                   const OpenDelegate& delegate) {
  StayingArguments found;
  if (std::ranges::none_of(delegate.outputs(), may_stay) || !is_called_once(call.delegate, plan)) return found;
  const std::vector<int> mentions = mentions_in(plan);
  const std::size_t inputs = delegate.inputs().size();
  for (std::size_t in = 0; in < inputs; ++in) {
    const std::size_t buffer = at(call.args[in]);
    const TensorCell& cell = cells[buffer].tensor;
    if (mentions[buffer] != 2 || !is_fixed_buffer(plan.values[buffer], cell)) continue;
    const auto to = std::find(call.args.begin() + static_cast<std::ptrdiff_t>(inputs), call.args.end(), call.args[in]);
    if (to == call.args.end()) continue;
    const auto out = static_cast<std::size_t>(to - call.args.begin());
    const std::uint32_t dtype = contract::contract_dtype(cell.type.dtype);
    const bool as_it_is =
        !contract::is_wider(*delegate.tensor(in), dtype) && !contract::is_wider(*delegate.tensor(out), dtype);
    if (as_it_is && may_stay(*delegate.tensor(out)) && is_alone(cells[buffer], cells)) found.emplace_back(in, out);
  }
  return found;
}

// What the delegates have and memory has not.
Status Method::Impl::bring_back() {
  for (Step& step : steps) {
    auto* call = std::get_if<DelegateStep>(&step);
    if (!call || call->newest != DelegateStep::Newest::delegate) continue;
    OpenDelegate& delegate = *delegates[call->delegate];
    for (auto [in, out] : call->staying) {
      const TensorCell& cell = cells[at(call->args[out])].tensor;
      TOSAIC_CHECK(delegate.fetch(out - delegate.inputs().size(),
                                  {static_cast<std::byte*>(cell.data), cell.type.storage_bytes()}));
    }
    call->newest = DelegateStep::Newest::both;
  }
  return {};
}

void Method::Impl::let_go() {
  for (Step& step : steps)
    if (auto* call = std::get_if<DelegateStep>(&step)) call->newest = DelegateStep::Newest::memory;
}

// Before somebody reads the buffers in memory.
Status Method::Impl::settle() {
  if (memory.shared()) TOSAIC_CHECK(memory.shared()->claim(this));
  return bring_back();
}

}  // namespace tosaic::runtime
