// SPDX-License-Identifier: Apache-2.0
#include "report/instructions.h"

#include <fmt/format.h>
#include <algorithm>
#include <functional>

#include "report/memory.h"

namespace tosaic::reporting {
namespace {

const pte::TensorValue* tensor_of(const pte::Plan& plan, std::int32_t v) {
  return v < 0 ? nullptr : std::get_if<pte::TensorValue>(&plan.values[static_cast<std::size_t>(v)]);
}

std::uint64_t bytes_of(const pte::TensorValue& tensor) {
  std::uint64_t elements = 1;
  for (std::int32_t size : tensor.sizes) elements *= static_cast<std::uint64_t>(std::max(size, 0));
  return elements * storage_size(tensor.dtype);
}

// The tensors of an argument: itself, or those of a list.
void add_tensors(const pte::Plan& plan, std::int32_t v, std::vector<std::int32_t>& to) {
  if (tensor_of(plan, v)) to.push_back(v);
  if (v < 0) return;
  if (const auto* list = std::get_if<pte::TensorList>(&plan.values[static_cast<std::size_t>(v)]))
    for (std::int32_t item : list->items)
      if (tensor_of(plan, item)) to.push_back(item);
}

struct Call {
  std::string op, text;
  std::vector<std::int32_t> tensors;
  bool last_is_written = false;  // kernels and moves write to their last argument
  std::optional<int> delegate;
};

Call call_of(const pte::Plan& plan, const pte::Instruction& instruction) {
  Call call;
  const auto all = [&](const std::vector<std::int32_t>& args) {
    for (std::int32_t v : args) add_tensors(plan, v, call.tensors);
  };
  std::visit(
      [&]<class T>(const T& i) {
        if constexpr (std::is_same_v<T, pte::KernelCall>) {
          const pte::OperatorName& op = plan.operators[static_cast<std::size_t>(i.op)];
          call.op = op.overload.empty() ? op.name : op.name + "." + op.overload;
          call.last_is_written = true;
          call.delegate = -1;
          all(i.args);
        } else if constexpr (std::is_same_v<T, pte::DelegateCall>) {
          call.op = plan.delegates[static_cast<std::size_t>(i.delegate)].id;
          call.delegate = i.delegate;
          call.text = fmt::format("delegate {}", i.delegate);
          all(i.args);
        } else if constexpr (std::is_same_v<T, pte::MoveCall>) {
          call.op = "move";
          call.last_is_written = true;
          all({i.from, i.to});
        } else if constexpr (std::is_same_v<T, pte::JumpFalseCall>) {
          call.op = "jump";
          call.text = fmt::format("to instruction {} unless v{}", i.destination, i.condition);
          all({i.condition});
        } else {
          call.op = "free";
          all({i.value});
        }
      },
      instruction);
  return call;
}

std::string type_of(const pte::TensorValue& tensor) {
  std::string text;
  for (std::int32_t size : tensor.sizes) text += fmt::format("{}x", size);
  return text + std::string(name_of(tensor.dtype));
}

}  // namespace

ShownGraph shown(const pte::Plan& plan) {
  ShownGraph graph{.name = plan.name, .kind = ShownGraph::Kind::instructions};
  std::vector<char> made(plan.values.size(), 0);
  for (std::size_t v = 0; v < plan.values.size(); ++v) {  // values keep their numbers
    ShownValue value{.name = fmt::format("v{}", v), .type = "", .scales = {}};
    if (const pte::TensorValue* tensor = tensor_of(plan, static_cast<std::int32_t>(v))) {
      value.type = type_of(*tensor);
      value.bytes = bytes_of(*tensor);
      value.is_constant = !tensor->constant.null() && !tensor->is_planned;
      if (!tensor->state_name.empty()) value.name = tensor->state_name;
      made[v] = value.is_constant || !tensor->external_name.empty() || !tensor->state_name.empty();
    }
    graph.values.push_back(std::move(value));
  }
  for (std::int32_t v : plan.inputs)
    if (v >= 0) made[static_cast<std::size_t>(v)] = 1, graph.inputs.push_back(static_cast<std::uint32_t>(v));
  for (std::int32_t v : plan.outputs)
    if (v >= 0) graph.outputs.push_back(static_cast<std::uint32_t>(v));
  for (std::size_t n = 0; n < plan.instructions.size(); ++n) {
    Call call = call_of(plan, plan.instructions[n]);
    ShownNode node;
    node.name = std::to_string(n);
    node.op = call.op;
    node.text = call.text;
    node.delegate = call.delegate;
    // A tensor that nobody has written yet is a result.
    for (std::int32_t v : call.tensors) {
      const auto value = static_cast<std::uint32_t>(v);
      const bool written = !made[value] || (call.last_is_written && v == call.tensors.back());
      std::vector<std::uint32_t>& list = written ? node.outputs : node.inputs;
      if (std::ranges::find(list, value) == list.end()) list.push_back(value);
    }
    for (std::uint32_t v : node.outputs) made[v] = 1;
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

ShownMemory planned_memory(const pte::Plan& plan, const ShownGraph& graph, std::size_t index) {
  ShownMemory memory;
  memory.graph = index;
  memory.name = "tensors of " + plan.name;
  memory.how = "as the .pte plans them; what delegates need inside is theirs";
  for (std::int64_t bytes : plan.arena_sizes) memory.arena_bytes += static_cast<std::uint64_t>(bytes);
  const std::uint32_t end = plan.instructions.empty() ? 0 : static_cast<std::uint32_t>(plan.instructions.size()) - 1;
  constexpr std::int32_t none = -1;
  std::vector<std::int32_t> buffer_of(plan.values.size(), none);
  const auto alive = [&](std::uint32_t v, std::uint32_t step) {
    const pte::TensorValue* tensor = tensor_of(plan, static_cast<std::int32_t>(v));
    if (!tensor || !tensor->is_planned) return;
    if (buffer_of[v] == none) {
      buffer_of[v] = static_cast<std::int32_t>(memory.buffers.size());
      memory.buffers.push_back({v, bytes_of(*tensor), tensor->planned.offset, step, step});
    }
    auto& buffer = memory.buffers[static_cast<std::size_t>(buffer_of[v])];
    buffer.last = std::max(buffer.last, step);
    if (!tensor->state_name.empty()) buffer.first = 0, buffer.last = end;  // it outlives a run
  };
  for (std::uint32_t v : graph.inputs) alive(v, 0);
  for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
    for (std::uint32_t v : graph.nodes[n].inputs) alive(v, n);
    for (std::uint32_t v : graph.nodes[n].outputs) alive(v, n);
  }
  for (std::uint32_t v : graph.outputs) alive(v, end);
  // What a loop reads is needed until it ends.
  for (std::uint32_t n = 0; n < plan.instructions.size(); ++n)
    if (const auto* jump = std::get_if<pte::JumpFalseCall>(&plan.instructions[n]);
        jump && jump->destination >= 0 && static_cast<std::uint32_t>(jump->destination) <= n)
      for (auto& buffer : memory.buffers)
        if (buffer.first < static_cast<std::uint32_t>(jump->destination) &&
            buffer.last >= static_cast<std::uint32_t>(jump->destination))
          buffer.last = std::max(buffer.last, n);
  set_peak(memory);
  return memory;
}

}  // namespace tosaic::reporting
