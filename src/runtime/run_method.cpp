// SPDX-License-Identifier: Apache-2.0
// A run of a method: its instructions, one after the other.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>

#include "base/loop_limit.h"
#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "contract/tensors.h"
#include "runtime/memory_order.h"
#include "runtime/method_impl.h"

namespace tosaic::runtime {
namespace {

constexpr std::size_t lent_alignment = 16;  // as planned memory has it

using Clock = SteadyClock;

}  // namespace

// An input, of sizes that the program takes.
Status Method::Impl::take(std::size_t i, const TensorView& given) {
  TensorCell& cell = cells[at(inputs[i])].tensor;
  const TensorType& wanted = input_types[i];
  bool fits = given.type.dtype == wanted.dtype && given.type.rank() == wanted.rank();
  for (int d = 0; fits && d < wanted.rank(); ++d) fits = wanted.shape[d].bounds().contain(given.type.shape.size(d));
  if (!fits)
    return error("run.input-type", fmt::format("input {} is {}, method '{}' takes {}", i, to_string(given.type),
                                               plan().name, to_string(wanted)));
  if (cell.varies) cell.type.shape = given.type.shape;
  if (lent[i] && reinterpret_cast<std::uintptr_t>(given.data) % lent_alignment == 0)
    cell.data = const_cast<void*>(given.data);  // nobody writes there
  else
    store_dense(cell, given.data);
  return {};
}
// New memory for the outputs that may be written anywhere; null: the others are where they are planned.
std::vector<Bytes> Method::Impl::borrow_outputs() {
  std::vector<Bytes> borrowed(outputs.size());
  std::vector<std::byte*> memories(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (anywhere[i]) borrowed[i] = Bytes::fresh(cells[at(outputs[i])].tensor.type.storage_bytes(), memories[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i)  // when all of it is there
    if (anywhere[i]) cells[at(outputs[i])].tensor.data = memories[i];
  return borrowed;
}
// Inputs and outputs that lay in the caller's memory.
void Method::Impl::give_back() {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (anywhere[i]) cells[at(outputs[i])].tensor.data = first_cells[at(outputs[i])].tensor.data;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (lent[i]) cells[at(inputs[i])].tensor.data = first_cells[at(inputs[i])].tensor.data;
}
Status Method::Impl::run_steps() {
  if (memory.shared()) TOSAIC_CHECK(memory.shared()->claim(this));
  for (Step& step : steps)
    if (auto* jump = std::get_if<JumpStep>(&step)) jump->turns = 0;
  for (std::size_t pc = 0; pc < steps.size();) {
    TOSAIC_CHECK(go_on());
    if (!timed) {
      TOSAIC_TRY(pc, run_step(pc));
      continue;
    }
    const std::size_t now = pc;
    const auto begin = Clock::now();
    TOSAIC_TRY(pc, run_step(pc));
    seconds[now] += std::chrono::duration<double>(Clock::now() - begin).count();
    if (const auto* step = std::get_if<DelegateStep>(&steps[now]))
      note_parts(now, *delegates[step->delegate], plan().delegates[step->delegate].id);
  }
  return {};
}
// Returns the number of the next one.
Result<std::size_t> Method::Impl::run_step(std::size_t pc) {
  Step& step = steps[pc];
  if (auto* kernel = std::get_if<std::unique_ptr<Kernel>>(&step)) {
    TOSAIC_CHECK((*kernel)->run(cells));
  } else if (auto* delegate = std::get_if<DelegateStep>(&step)) {
    TOSAIC_CHECK(execute(*delegate));
  } else if (auto* move = std::get_if<MoveStep>(&step)) {
    cells[at(move->to)] = cells[at(move->from)];
  } else if (auto* jump = std::get_if<JumpStep>(&step)) {
    TOSAIC_TRY(bool holds, truth(jump->condition));
    if (!holds && jump->destination <= pc) TOSAIC_CHECK(count_turn(pc));
    if (!holds) return jump->destination;
  }
  return pc + 1;
}

// The jump goes back. What it encloses is entered anew, loops as well.
Status Method::Impl::count_turn(std::size_t pc) {
  auto& back = std::get<JumpStep>(steps[pc]);
  std::int64_t most = origin->options.most_turns;
  if (most <= 0) { TOSAIC_TRY(most, most_turns()); }
  if (back.turns == most) return too_many_turns(most);
  for (std::size_t s = back.destination; s < pc; ++s)
    if (auto* inner = std::get_if<JumpStep>(&steps[s])) inner->turns = 0;
  ++back.turns;
  return {};
}
Status Method::Impl::execute(DelegateStep& step) {
  OpenDelegate& delegate = *delegates[step.delegate];
  const auto may_vary = [&](std::int32_t i) {
    const TensorCell& cell = cells[at(i)].tensor;
    return cell.varies && cell.dim_order.empty();  // payloads have one size of what lies in another order
  };
  if (std::ranges::any_of(step.args, may_vary)) TOSAIC_CHECK(resize_outputs(step));
  const std::size_t read_only = delegate.inputs().size();
  step.arguments.clear();
  for (std::size_t k = 0; k < step.args.size(); ++k) {
    const TensorCell& tensor = cells[at(step.args[k])].tensor;
    if (k >= read_only && tensor.constant) return error("delegate.arguments", "a delegate would write to a constant");
    step.arguments.push_back(contract::tensor_of(step.reordered[k] ? *step.reordered[k] : tensor.type, tensor.data));
  }
  for (auto [in, out] : step.staying) {
    step.arguments[out].stays = 1;
    if (step.newest != DelegateStep::Newest::memory)
      step.arguments[in].stays = static_cast<std::uint32_t>(out - read_only) + 1;
  }
  if (Status ran = delegate.execute(step.arguments); !ran.ok()) {
    if (step.newest == DelegateStep::Newest::both) step.newest = DelegateStep::Newest::memory;
    return ran;
  }
  if (step.staying.empty()) return {};
  step.newest = DelegateStep::Newest::delegate;
  if (memory.shared()) memory.shared()->kept_by(this);
  return {};
}
// For the inputs at hand; within the memory that the program has for them.
Status Method::Impl::resize_outputs(const DelegateStep& step) {
  OpenDelegate& delegate = *delegates[step.delegate];
  const std::size_t count = delegate.inputs().size();
  std::vector<tosaic_delegate_tensor> given;
  for (std::size_t k = 0; k < count; ++k) {
    const TensorCell& cell = cells[at(step.args[k])].tensor;
    given.push_back(contract::tensor_of(cell.type, cell.data));
  }
  TOSAIC_TRY(const std::vector<Shape> sizes, delegate.sizes(given));
  for (std::size_t k = count; k < step.args.size(); ++k) {
    TensorCell& cell = cells[at(step.args[k])].tensor;
    const Shape& most = first_cells[at(step.args[k])].tensor.type.shape;
    const Shape& made = sizes[k - count];
    if (!cell.varies && made == most) continue;
    bool fits = cell.varies && made.rank() == most.rank();
    for (int d = 0; fits && d < made.rank(); ++d) fits = made.size(d) <= most.size(d);
    if (!fits)
      return error("delegate.arguments", fmt::format("output {} is {} for these inputs, the program has {}", k - count,
                                                     to_string(made), to_string(most)));
    cell.type.shape = made;
  }
  return {};
}
// False: a false boolean, or a boolean tensor with a false element.
Result<bool> Method::Impl::truth(std::int32_t condition) const {
  const Cell& cell = cells[at(condition)];
  if (const auto* b = std::get_if<bool>(&cell.value); b && !cell.is_tensor) return *b;
  if (!cell.is_tensor || cell.tensor.type.dtype != DType::boolean)
    return error("method.condition", "a condition is no boolean");
  const auto* elements = static_cast<const std::uint8_t*>(cell.tensor.data);
  for (std::int64_t i = 0; i < cell.tensor.type.shape.elements(); ++i)
    if (!elements[i]) return false;
  return true;
}
// What the delegate tells of the execution that has just ended.
void Method::Impl::note_parts(std::size_t step, const OpenDelegate& delegate, const std::string& id) {
  const tosaic_delegate_profile profile = delegate.profile();
  const std::string device = delegate.device();
  const tosaic_delegate_time whole{device.c_str(), "", "", profile.seconds};
  std::span<const tosaic_delegate_time> told(profile.times, profile.count);
  if (told.empty() && profile.clock == TOSAIC_DELEGATE_CLOCK_DEVICE) told = {&whole, 1};
  parts[step].resize(told.size());
  for (std::size_t i = 0; i < told.size(); ++i) {
    parts[step][i].operation = told[i].name;
    parts[step][i].seconds += told[i].seconds;
    parts[step][i].within = id;
    parts[step][i].value = told[i].value;
    parts[step][i].place = told[i].place;
  }
}

}  // namespace tosaic::runtime
