// SPDX-License-Identifier: Apache-2.0
// A method made ready to run: its memory, its delegates, its instructions.
#include <fmt/format.h>
#include <map>

#include "runtime/memory_order.h"
#include "runtime/method_impl.h"
#include "runtime/sized_kernel.h"
#include "runtime/value_uses.h"
#include "runtime/whole.h"

namespace tosaic::runtime {

Status Method::Impl::load() {
  TOSAIC_CHECK(place());
  for (std::int32_t i : plan().inputs)
    if (cells[at(i)].is_tensor) {
      if (cells[at(i)].tensor.constant) return error("method.input", "an input of the method is a constant");
      inputs.push_back(i);
      input_types.push_back(cells[at(i)].tensor.type);
    }
  for (std::int32_t i : plan().outputs) TOSAIC_CHECK(add_output(i));
  TOSAIC_CHECK(prepare());
  const auto inputs_of = [&](std::size_t delegate) { return delegates[delegate]->inputs().size(); };
  TOSAIC_CHECK(check_whole(plan(), inputs_of));
  if (origin->options.fixed_sizes) TOSAIC_CHECK(check_fixed());
  let_vary();
  const DelegateUses uses = delegate_uses(plan(), cells, inputs_of);
  lent = lendable(inputs, cells, uses);
  anywhere = written_anywhere(outputs, plan(), cells, uses);
  make_output_space();
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (auto* step = std::get_if<DelegateStep>(&steps[s]))
      step->staying = staying_arguments(std::get<pte::DelegateCall>(plan().instructions[s]), plan(), cells,
                                        *delegates[step->delegate]);
  return {};
}

Status Method::Impl::check_fixed() const {
  for (std::size_t i = 0; i < plan().values.size(); ++i)
    if (const auto* tensor = std::get_if<pte::TensorValue>(&plan().values[i]); tensor && tensor->shape_dynamism != 0)
      return error("method.sizes-vary",
                   fmt::format("the sizes of value {} vary, up to {}", i, to_string(cells[i].tensor.type.shape)))
          .hint("export the model with fixed sizes for this device");
  return {};
}

// A run takes no memory for what can be told before it.
void Method::Impl::make_output_space() {
  output_space.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const TensorCell& cell = cells[at(outputs[i])].tensor; !cell.dim_order.empty())
      output_space[i].resize(cell.type.storage_bytes());
}

// `from` may be running: of it only that is read which never changes.
Status Method::Impl::copy(const Impl& from) {
  TOSAIC_CHECK(place());
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (const TensorCell& other = from.first_cells[i].tensor; other.varies) {
      cells[i].tensor.varies = true;
      cells[i].tensor.dim_order = other.dim_order;
    }
  first_cells = cells;
  inputs = from.inputs;
  lent = from.lent;
  outputs = from.outputs;
  anywhere = from.anywhere;
  others = from.others;
  input_types = from.input_types;
  output_types = from.output_types;
  make_output_space();
  delegates.resize(from.delegates.size());
  for (std::size_t i = 0; i < delegates.size(); ++i) {
    if (!from.delegates[i]) continue;
    TOSAIC_TRY(auto made, from.delegates[i]->clone());
    if (made)
      delegates[i] = std::make_unique<OpenDelegate>(*std::move(made));
    else
      TOSAIC_CHECK(open_delegate(i));
  }
  for (const Step& step : from.steps) {
    if (const auto* kernel = std::get_if<std::unique_ptr<Kernel>>(&step)) {
      TOSAIC_TRY(auto made, (*kernel)->clone());
      steps.emplace_back(std::move(made));
    } else if (const auto* delegate = std::get_if<DelegateStep>(&step)) {
      steps.emplace_back(DelegateStep{delegate->delegate, delegate->args, delegate->reordered, delegate->staying});
    } else if (const auto* move = std::get_if<MoveStep>(&step)) {
      steps.emplace_back(*move);
    } else if (const auto* jump = std::get_if<JumpStep>(&step)) {
      steps.emplace_back(*jump);
    } else {
      steps.emplace_back(NoStep{});
    }
  }
  return {};
}

// Memory and cells as the program says.
Status Method::Impl::place() {
  TOSAIC_CHECK(memory.place(plan(), origin->data, cells));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto* tensor = std::get_if<pte::TensorValue>(&plan().values[i]);
    if (!tensor || tensor->state_name.empty() || !tensor->is_planned) continue;
    states.push_back({tensor->state_name, cells[i].tensor.type});
    state_cells.push_back(static_cast<std::int32_t>(i));
  }
  first_cells = cells;
  return {};
}

Status Method::Impl::add_output(std::int32_t i) {
  const Cell& cell = cells[at(i)];
  if (cell.is_tensor) {
    outputs.push_back(i);
    output_types.push_back(cell.tensor.type);
    return {};
  }
  const auto* tensors = std::get_if<pte::TensorList>(&cell.value);
  if (!tensors) {
    others.emplace_back(outputs.size() + others.size(), i);
    return {};
  }
  for (std::int32_t item : tensors->items) {
    if (item < 0 || !cells[at(item)].is_tensor)
      return error("method.output", fmt::format("output {} is a list with None in it", outputs.size() + others.size()))
          .hint("return tensors, scalars, None and lists of tensors");
    TOSAIC_CHECK(add_output(item));
  }
  return {};
}
Status Method::Impl::prepare() {
  const pte::Plan& plan = origin->plan;
  const Options& options = origin->options;
  auto [changing, used] = value_uses(plan, cells);
  const auto making = std::make_shared<const Making>(
      Making{origin, &plan, std::move(changing), std::move(used), options.threads, options.interpret, options.kernels});
  delegates.resize(plan.delegates.size());
  steps.reserve(plan.instructions.size());
  for (const pte::Instruction& instruction : plan.instructions) {
    const std::size_t number = steps.size();
    auto in_instruction = [&](Diagnostic why) {
      why.notes.push_back(fmt::format("in instruction {} of method '{}'", number, plan.name));
      return why;
    };
    if (const auto* call = std::get_if<pte::KernelCall>(&instruction)) {
      auto kernel = make_kernel(making, *call, cells);
      if (!kernel.ok()) return in_instruction(std::move(kernel.error()));
      steps.emplace_back(std::move(*kernel));
    } else if (const auto* delegate = std::get_if<pte::DelegateCall>(&instruction)) {
      auto step = prepare_delegate(*delegate);
      if (!step.ok()) return in_instruction(std::move(step.error()));
      steps.emplace_back(std::move(*step));
    } else if (const auto* move = std::get_if<pte::MoveCall>(&instruction)) {
      const Cell &from = cells[at(move->from)], &to = cells[at(move->to)];
      if (from.is_tensor != to.is_tensor || (from.is_tensor && !(from.tensor.type == to.tensor.type)))
        return in_instruction(error("method.move", "a move is between values of different types"));
      steps.emplace_back(MoveStep{move->from, move->to});
    } else if (const auto* jump = std::get_if<pte::JumpFalseCall>(&instruction)) {
      steps.emplace_back(JumpStep{jump->condition, at(jump->destination)});
    } else {
      steps.emplace_back(NoStep{});  // frees: memory belongs to the method as a whole
    }
  }
  return {};
}

Status Method::Impl::open_delegate(std::size_t number) {
  const Options& options = origin->options;
  const pte::Delegate& from = plan().delegates[number];
  const auto choice = options.delegates.find(from.id);
  if (choice == options.delegates.end()) {
    std::string known;
    for (const auto& [id, other] : options.delegates) known += (known.empty() ? "'" : ", '") + id + "'";
    return error("delegate.unknown", fmt::format("the program needs the delegate '{}', which is not here", from.id))
        .note("the delegates here are " + (known.empty() ? "none" : known))
        .hint("run the program where that delegate is linked in, or compile the model for another target");
  }
  TOSAIC_TRY(OpenDelegate open, OpenDelegate::open(choice->second, from.payload.joined(), from.specs,
                                                   {options.threads, options.interpret, false,
                                                    fmt::format("{} (delegate {})", options.file, number),
                                                    &origin->data, options.trace, options.told}));
  delegates[number] = std::make_unique<OpenDelegate>(std::move(open));
  return {};
}

Result<DelegateStep> Method::Impl::prepare_delegate(const pte::DelegateCall& call) {
  std::vector<TensorType> types;
  for (std::int32_t i : call.args) {
    if (!cells[at(i)].is_tensor)
      return error("delegate.arguments", fmt::format("delegate '{}' is given a value that is no tensor",
                                                     plan().delegates[at(call.delegate)].id));
  }
  std::unique_ptr<OpenDelegate>& delegate = delegates[at(call.delegate)];
  if (!delegate) TOSAIC_CHECK(open_delegate(at(call.delegate)));
  for (std::size_t k = 0; k < call.args.size(); ++k)
    types.push_back(type_in_memory(cells[at(call.args[k])].tensor, delegate->tensor(k)));
  TOSAIC_CHECK(delegate->check(types));
  DelegateStep step{at(call.delegate), call.args};
  step.reordered.resize(call.args.size());
  for (std::size_t k = 0; k < call.args.size(); ++k)
    if (!cells[at(call.args[k])].tensor.dim_order.empty()) step.reordered[k] = std::move(types[k]);
  step.arguments.reserve(call.args.size());
  return step;
}
// Sizes that the program leaves to the caller, and the delegates among them as far as they say, are the caller's here.
void Method::Impl::let_vary() {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto* value = std::get_if<pte::TensorValue>(&plan().values[i]);
    TensorCell& cell = cells[i].tensor;
    cell.varies = value && value->shape_dynamism != 0;
    if (cell.varies && lies_in_order(cell)) cell.dim_order.clear();
  }
  std::map<std::int32_t, Shape> said;  // by the delegates that take it
  for (const Step& step : steps) {
    const auto* call = std::get_if<DelegateStep>(&step);
    if (!call) continue;
    const OpenDelegate& delegate = *delegates[call->delegate];
    for (std::size_t k = 0; k < call->args.size(); ++k) {
      const TensorCell& cell = cells[at(call->args[k])].tensor;
      const tosaic_delegate_tensor_info& info = *delegate.tensor(k);
      if (!cell.varies || !cell.dim_order.empty() || info.rank != static_cast<std::uint32_t>(cell.type.rank()))
        continue;
      std::vector<Dim> dims = cell.type.shape.dims();
      for (std::uint32_t d = 0; d < info.rank; ++d)
        if (info.least[d] != info.most[d])
          dims[d] = Symbol{fmt::format("{}.{}", info.name, d), {info.least[d], info.most[d]}};
      said.insert_or_assign(call->args[k], Shape(dims));
    }
  }
  const auto tell = [&](const std::vector<std::int32_t>& list, std::vector<TensorType>& types, const char* what) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const TensorCell& cell = cells[at(list[i])].tensor;
      if (const auto known = said.find(list[i]); known != said.end()) {
        types[i].shape = known->second;
        continue;
      }
      for (int d = 0; cell.varies && d < cell.type.rank(); ++d)
        types[i].shape.set(d, Symbol{fmt::format("{} {}.{}", what, i, d), {0, cell.type.shape.size(d)}});
    }
  };
  tell(inputs, input_types, "input");
  tell(outputs, output_types, "output");
  first_cells = cells;
}

}  // namespace tosaic::runtime
