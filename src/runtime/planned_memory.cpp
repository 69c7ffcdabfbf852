// SPDX-License-Identifier: Apache-2.0
#include "runtime/planned_memory.h"

#include <fmt/format.h>
#include <cstring>

#include "base/memory.h"
#include "base/zero_again.h"

namespace tosaic::runtime {
namespace {

// A constant that the program keeps in a .ptd file.
Result<Bytes> external(const std::string& name, const TensorType& type, const NamedData& data) {
  const auto found = data.find(name);
  if (found == data.end())
    return error("method.external-data", fmt::format("the data of '{}' is in another file", name))
        .hint("give it with --data FILE.ptd");
  if (found->second.size() != type.storage_bytes())
    return error("method.external-data",
                 fmt::format("'{}' is {} ({} bytes) in the program and {} bytes in the data file", name,
                             to_string(type), type.storage_bytes(), found->second.size()));
  const bool aligned = reinterpret_cast<std::uintptr_t>(found->second.data()) % storage_size(type.dtype) == 0;
  return aligned ? found->second : Bytes::copy(found->second.data(), found->second.size());
}

}  // namespace

Status PlannedMemory::place(const pte::Plan& plan, const NamedData& data, Cells& cells) {
  for (std::size_t i = 0; i < plan.arena_sizes.size(); ++i)
    if (shared_ && i == SharedMemory::arena)
      blocks_.push_back({shared_->start(), shared_->bytes()});
    else
      TOSAIC_CHECK(reserve(static_cast<std::uint64_t>(plan.arena_sizes[i]), plan));
  cells.resize(plan.values.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (const auto* tensor = std::get_if<pte::TensorValue>(&plan.values[i])) {
      TOSAIC_CHECK(place_tensor(*tensor, plan, data, cells[i]));
    } else {
      cells[i].value = plan.values[i];
    }
  }
  return {};
}

void PlannedMemory::reset() {
  for (const Block& block : blocks_)
    if (!shared_ || block.start != shared_->start()) zero_again(block.start, block.bytes);
  if (shared_) shared_->reset();
  for (const auto& [to, content] : contents_) std::memcpy(to, content.data(), content.size());
}

// Memory for tensors; zeroed, as ExecuTorch's Module gives it, and aligned for any element and vector load.
Result<std::byte*> PlannedMemory::reserve(std::uint64_t bytes, const pte::Plan& plan) {
  wanted_bytes_ = bytes > UINT64_MAX - wanted_bytes_ ? UINT64_MAX : wanted_bytes_ + bytes;
  TOSAIC_CHECK(check_memory(wanted_bytes_, fmt::format("method '{}'", plan.name)));
  auto fresh = zeroed_memory(bytes);
  if (!fresh)
    return error("method.memory", fmt::format("there are no {} bytes of memory for the method's tensors", bytes))
        .hint("close other programs, or run it on a larger machine");
  blocks_.push_back({std::move(fresh), static_cast<std::size_t>(bytes)});
  return blocks_.back().start.get();
}

Status PlannedMemory::place_tensor(const pte::TensorValue& tensor, const pte::Plan& plan, const NamedData& data,
                                   Cell& cell) {
  cell.is_tensor = true;
  cell.tensor.type = {tensor.dtype, Shape(std::vector<std::int64_t>(tensor.sizes.begin(), tensor.sizes.end())), {}};
  cell.tensor.dim_order = tensor.dim_order;
  const std::size_t bytes = cell.tensor.type.storage_bytes();
  Bytes constant = tensor.constant;
  if (!tensor.external_name.empty()) { TOSAIC_TRY(constant, external(tensor.external_name, cell.tensor.type, data)); }
  if (tensor.is_planned) {
    if (tensor.planned.memory_id == 0 || tensor.planned.memory_id > plan.arena_sizes.size() ||
        tensor.planned.offset + bytes > static_cast<std::uint64_t>(plan.arena_sizes[tensor.planned.memory_id - 1]))
      return error("method.memory", "a tensor is planned outside its arena");
    cell.tensor.data = blocks_[tensor.planned.memory_id - 1].start.get() + tensor.planned.offset;
    const bool kept_together = shared_ && tensor.planned.memory_id == SharedMemory::arena + 1;
    if (!constant.empty() && !kept_together) {
      std::memcpy(cell.tensor.data, constant.data(), constant.size());
      contents_.emplace_back(cell.tensor.data, constant);
    }
  } else if (!constant.null()) {
    cell.tensor.constant = true;
    cell.tensor.data = const_cast<std::byte*>(constant.data());  // `constant` keeps everyone from writing
    constants_.push_back(constant);
  } else {  // memory that the caller or a move would give
    TOSAIC_TRY(cell.tensor.data, reserve(bytes, plan));
  }
  return {};
}

}  // namespace tosaic::runtime
