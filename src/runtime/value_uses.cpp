// SPDX-License-Identifier: Apache-2.0
#include "runtime/value_uses.h"

#include <algorithm>

#include "runtime/kernel.h"

namespace tosaic::runtime {

ValueUses value_uses(const pte::Plan& plan, const Cells& cells) {
  ValueUses uses{std::vector<char>(cells.size(), 0), std::vector<char>(cells.size(), 0)};
  std::vector<char>&changing = uses.changing, &used = uses.used;
  std::vector<int> mentions(cells.size(), 0);
  for (std::int32_t i : plan.outputs) used[at(i)] = 1;
  for (std::int32_t i : plan.inputs) used[at(i)] = 1;
  for (const pte::Instruction& instruction : plan.instructions) {
    if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      changing[at(move->to)] = used[at(move->from)] = used[at(move->to)] = 1;
    } else if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      if (std::int32_t n = written_number(plan.operators[at(call->op)], *call); n >= 0) changing[at(n)] = 1;
      // The same value twice in one call is its result, which is passed again as what the call returns.
      std::vector<std::int32_t> once = call->args;
      for (std::int32_t i : call->args)
        if (const auto* list = std::get_if<pte::TensorList>(&plan.values[at(i)]))
          once.insert(once.end(), list->items.begin(), list->items.end());
      std::sort(once.begin(), once.end());
      once.erase(std::unique(once.begin(), once.end()), once.end());
      for (std::int32_t i : once)
        if (i >= 0 && ++mentions[at(i)] > 1) used[at(i)] = 1;
    } else if (const auto* delegate = std::get_if<pte::DelegateCall>(&instruction)) {
      for (std::int32_t i : delegate->args) used[at(i)] = 1;
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      used[at(jump->condition)] = 1;
    }
  }
  // Planned memory may be shared with a value of another name (elided views, which have as many bytes): then both
  // count as read.
  for (std::size_t a = 0; a < cells.size(); ++a)
    if (cells[a].is_tensor && !used[a])
      for (std::size_t b = 0; b < cells.size() && !used[a]; ++b)
        if (a != b && cells[b].is_tensor && cells[b].tensor.data == cells[a].tensor.data &&
            cells[b].tensor.type.dtype == cells[a].tensor.type.dtype && mentions[b] > 0 &&
            cells[a].tensor.type.storage_bytes() > 0 &&
            cells[b].tensor.type.storage_bytes() == cells[a].tensor.type.storage_bytes())
          used[a] = 1;
  return uses;
}

DelegateUses delegate_uses(const pte::Plan& plan, const Cells& cells, const InputsOf& inputs_of) {
  DelegateUses uses{std::vector<char>(cells.size(), 0), std::vector<char>(cells.size(), 0),
                    std::vector<char>(cells.size(), 0)};
  std::vector<char>&read_by_others = uses.read_by_others, &written_first = uses.written_first, &met = uses.met;
  const auto other = [&](std::int32_t i) {
    if (i < 0) return;
    read_by_others[at(i)] = met[at(i)] = 1;
    if (const auto* list = std::get_if<pte::TensorList>(&plan.values[at(i)]))
      for (std::int32_t item : list->items)
        if (item >= 0) read_by_others[at(item)] = met[at(item)] = 1;
  };
  for (const pte::Instruction& instruction : plan.instructions) {
    if (const auto* call = std::get_if<pte::DelegateCall>(&instruction)) {
      const std::size_t read_only = inputs_of(at(call->delegate));
      for (std::size_t k = 0; k < call->args.size(); ++k) {
        const std::size_t cell = at(call->args[k]);
        if (k >= read_only) (met[cell] ? read_by_others : written_first)[cell] = 1;
        met[cell] = 1;
      }
    } else if (const auto* kernel = std::get_if<pte::KernelCall>(&instruction)) {
      for (std::int32_t i : kernel->args) other(i);
    } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      other(move->from);
      other(move->to);
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      other(jump->condition);
    }
  }
  for (std::int32_t i : plan.outputs) read_by_others[at(i)] |= !written_first[at(i)];
  return uses;
}

bool share_memory(const TensorCell& a, const TensorCell& b) {
  const auto *x = static_cast<const std::byte*>(a.data), *y = static_cast<const std::byte*>(b.data);
  return x && y && x < y + b.type.storage_bytes() && y < x + a.type.storage_bytes();
}

// Whoever shares an input's planned memory must not expect the input there: it is first written by a delegate.
std::vector<char> lendable(const std::vector<std::int32_t>& inputs, const Cells& cells, const DelegateUses& uses) {
  const auto& [read_by_others, written_first, met] = uses;
  std::vector<char> found;
  for (std::int32_t i : inputs) {
    const TensorCell& input = cells[at(i)].tensor;
    bool may = !read_by_others[at(i)] && !written_first[at(i)] && input.dim_order.empty();
    for (std::size_t c = 0; may && c < cells.size(); ++c)
      if (c != at(i) && cells[c].is_tensor && met[c] && share_memory(cells[c].tensor, input)) may = written_first[c];
    found.push_back(may);
  }
  return found;
}

// Whoever shares an output's planned memory must not expect the output there: it is written by the caller, or first by
// a delegate.
std::vector<char> written_anywhere(const std::vector<std::int32_t>& outputs, const pte::Plan& plan, const Cells& cells,
                                   const DelegateUses& uses) {
  const auto& [read_by_others, written_first, met] = uses;
  const bool straight = std::ranges::none_of(plan.instructions, [](const auto& instruction) {
    return std::holds_alternative<pte::JumpFalseCall>(instruction);
  });
  const auto is_scratch = [&](std::int32_t i) {  // no buffer, whose content stays from run to run
    const auto* tensor = std::get_if<pte::TensorValue>(&plan.values[at(i)]);
    return tensor && tensor->is_planned && tensor->planned.memory_id == 1 && tensor->state_name.empty() &&
           tensor->constant.null();
  };
  std::vector<char> given = written_first;
  for (std::int32_t i : plan.inputs) given[at(i)] = 1;
  std::vector<char> found;
  for (std::int32_t i : outputs) {
    const TensorCell& output = cells[at(i)].tensor;
    bool may = straight && is_scratch(i) && written_first[at(i)] && !read_by_others[at(i)] &&
               output.dim_order.empty() && !output.varies && std::ranges::count(outputs, i) == 1;
    for (std::size_t c = 0; may && c < cells.size(); ++c)
      if (c != at(i) && cells[c].is_tensor && met[c] && share_memory(cells[c].tensor, output)) may = given[c];
    found.push_back(may);
  }
  return found;
}

}  // namespace tosaic::runtime
